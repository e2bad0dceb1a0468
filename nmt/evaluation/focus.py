"""How widely did it look? Figures of the weights of translations."""

from collections.abc import Iterable

import numpy as np

from nmt.translation.types import Translation


def hidden_share(translations: Iterable[Translation]) -> float:
    """The share of slots without any weight, over all heads and rows: what windows hid from their steps.

    0 for a global window, short of weights too small for a float32 (e^-103). Translations without weights are left
    out; with none left, the share is 0.
    """
    hidden = total = 0
    for translation in translations:
        if translation.weights is not None:
            hidden += int(np.count_nonzero(translation.weights == 0))
            total += translation.weights.size
    return hidden / total if total else 0.0
