"""The validated settings of `nmt.align` for runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from nmt.alignment.symmetrization import AGREEMENT, LEAST_AGREEMENT, SYMMETRIZATIONS, agreement, symmetrize
from nmt.alignment.word_weights import Weights, best_links
from nmt.build.aligner import AlignerRequest
from nmt.build.requests import Data
from nmt.data.document_lines import Followed
from nmt.links import Base, Link
from nmt.system.errors import SettingError, UserError
from nmt.system.limits import Limit

Share = Annotated[float, Limit(lambda value: 0 < value <= 1, "greater than 0 and at most 1")]


@dataclass(frozen=True)
class Aligning:
    """The settings of `nmt.align` for runs; `configs/align.yaml` explains them."""

    aligner: AlignerRequest
    run: str | Sequence[str] | None
    reverse: Path | None
    source: Path | None
    target: Path | None
    split: str | None
    gold: Path | None
    gold_base: Base
    words: str
    languages: Any
    method: Literal["attention", "saliency", "both"]
    shift: Literal["0", "1", "auto"]
    valid_source: Path | None
    valid_target: Path | None
    valid_gold: Path | None
    valid_words: str | None
    threshold: Share | None
    symmetrize: str | None
    output: Path | None
    matrix: Path | None
    data: Data | None = None
    documents: Followed = "blank"

    def __post_init__(self) -> None:
        if self.run is None:
            raise UserError("Give run=checkpoints/NAME to make links, or links=FILE gold=FILE to score existing links.")
        if self.method == "saliency" and self.shift == "1":
            raise UserError("shift=1 works only with attention. Leave out shift=1.")
        if self.symmetrize not in (None, AGREEMENT, *SYMMETRIZATIONS):
            names = ", ".join((AGREEMENT, *SYMMETRIZATIONS))
            raise SettingError("symmetrize", self.symmetrize, f"must be one of {names}.")
        if self.symmetrize is not None and self.reverse is None and not self.agrees:
            raise UserError(f"symmetrize={self.symmetrize} combines two directions: give reverse=RUN as well.")

    @property
    def joining(self) -> str:
        """The rule that combines two directions."""
        return self.symmetrize or AGREEMENT

    @property
    def agrees(self) -> bool:
        """Whether `threshold` is the least agreement, of two directions or of attention and saliency."""
        return self.joining == AGREEMENT and (self.reverse is not None or self.method == "both")

    @property
    def least_weight(self) -> float | None:
        """The threshold of weights; None if `threshold` is the least agreement."""
        return None if self.agrees else self.threshold

    def matrices(self, weights: Sequence[Sequence[Weights]]) -> list[Weights]:
        """The weights of each direction: the mean of attention and saliency with method=both."""
        return [np.mean(kinds, axis=0, dtype=np.float32) for kinds in weights]

    def join(self, weights: Sequence[Sequence[Weights]]) -> set[Link]:
        """The links of a pair, from one direction or from both.

        With agreement, they are the pairs of words on which the two directions agree; with one direction, its attention
        and its saliency.

        Args:
            weights: the weights of one or two kinds of evidence for each direction: [Tw, Sw], and [Sw, Tw] for the
                reverse.
        """
        views = [*weights[0]] if len(weights) == 1 else self.matrices(weights)
        if len(views) == 1:
            return set(best_links(views[0], self.least_weight))
        if len(weights) == 1 or self.joining == AGREEMENT:
            other = views[1] if len(weights) == 1 else views[1].T
            least = self.threshold if self.agrees else None  # without `agrees`, the threshold is one of weights
            return set(best_links(agreement(views[0], other), LEAST_AGREEMENT if least is None else least))
        forward, backward = (best_links(view, self.least_weight) for view in views)
        return symmetrize(forward, [(source, target) for target, source in backward], self.joining)
