"""What an exporter asks of an attention: the formula of its score, and whether its other parts can be exported.

The only place of this package that lists scores, windows and reads by their types.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from nmt.attention import Attention, Score
from nmt.attention.normalisers import Softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat, Dot, General, ScaledDot
from nmt.attention.windows import Global


class ScoreForm(NamedTuple):
    """The energy of a query q and a key K = U k: `scale` q . K, or with v, v . tanh(W q + K).

    Attributes:
        key_weight: U [A, Dk]; None if K = k.
        query_weight: W [A, Dq].
        v: [A].
        scale: of a product.
    """

    key_weight: Tensor | None = None
    query_weight: Tensor | None = None
    v: Tensor | None = None
    scale: float = 1.0


_FORMS: Mapping[type, Callable[[Any], ScoreForm]] = {
    Additive: lambda score: ScoreForm(score.U.weight, score.W.weight, score.v),
    Concat: lambda score: ScoreForm(
        score.W.weight[:, score.query_size :], score.W.weight[:, : score.query_size], score.v
    ),
    Dot: lambda score: ScoreForm(),
    General: lambda score: ScoreForm(score.W.weight),
    ScaledDot: lambda score: ScoreForm(scale=score.key_size**-0.5),
}


def form_of(score: Score) -> ScoreForm | None:
    """The formula of a score of one head; None for a score that has no such formula."""
    make = _FORMS.get(type(score))
    return None if make is None else make(score)


def unsupported(key: str, attention: Attention, *, scaled_dot_only: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each part of the attention at `key` that cannot be exported: its name, and the choices that can.

    With `scaled_dot_only`, the only score that can is q . k / sqrt(Dk).
    """
    form = form_of(attention.score)
    scaled = form == ScoreForm(scale=attention.score.key_size**-0.5)
    if form is None or (scaled_dot_only and not scaled):
        yield "score", "scaled_dot" if scaled_dot_only else "additive, concat, dot, general or scaled_dot"
    if type(attention.window) is not Global:
        yield "window", "global"
    if not attention.normaliser.is_softmax:
        tempered = isinstance(attention.normaliser, Softmax)
        yield "normaliser", f"softmax {key}.normaliser.temperature=1" if tempered else "softmax"
    if type(attention.read) is not Soft:
        yield "read", "soft"
