"""The questions of the study: contrasts between two rows, and which differences count as an answer.

Notes on what else differs between the rows of a contrast are on the page.
"""

from collections.abc import Sequence
from typing import NamedTuple

Pairs = Sequence[tuple[str, str]]


class Question(NamedTuple):
    """A question.

    Attributes:
        text: the question.
        pairs: the rows that are compared, from and to.
        change: whether any difference is an answer; else the second row is to be better.
        controls: further contrasts, which explain the answer but do not decide it; corrected together with the others.
    """

    text: str
    pairs: Pairs
    change: bool = False
    controls: Pairs = ()


DEFAULT = "luong-general"  # the attention and wiring of nmt.train without overrides
_FAMILIES = [(DEFAULT, name) for name in ("transformer", "weighted-transformer", "gru-transformer")]
_FAMILIES += [(DEFAULT, name) for name in ("transformer-luong", "conv")]
_WIRING = "Does it matter when the decoder attends, and what it is fed?"
_HELPS = Question("Does attention help?", [("none", "bahdanau"), ("none", DEFAULT)])
QUESTIONS = (
    _HELPS,
    Question(
        _WIRING,
        [
            *(("bahdanau", other) for other in ("bahdanau-previous-state", "conditional")),
            *(("bahdanau", other) for other in ("luong-additive-nofeed", "luong-additive")),
            *(("luong-additive-nofeed", "luong-additive"), ("luong-general-nofeed", DEFAULT)),
        ],
        change=True,
    ),
    Question(
        "Do projections help `dot`, `scaled_dot` and `cosine`?",
        [(name, f"{name}-projected") for name in ("luong-dot", "luong-scaled_dot", "luong-cosine")],
    ),
    Question(
        "Does the score matter where query and key pass through matrices?",
        [("luong-dot-projected", other) for other in ("luong-scaled_dot-projected", "luong-cosine-projected")]
        + [(DEFAULT, other) for other in ("luong-dot-projected", "luong-additive")],
        change=True,
        controls=[("luong-additive", "luong-concat")],
    ),
    Question(
        "Do windows help here?",
        [(DEFAULT, f"luong-{window}-{radius}") for window in ("local_m", "local_p") for radius in (2, 4)],
    ),
    Question(
        "Do several heads help here?",
        [
            (f"{name}-projected", f"{name}-heads-{heads}")
            for name in ("bahdanau", "luong-dot", "luong-scaled_dot")
            for heads in (2, 4)
        ],
    ),
    Question("Does coverage help here?", [("bahdanau", "coverage"), ("bahdanau", "coverage-loss")]),
    Question(
        "Do hard reads help here?",
        [*(("bahdanau", "hard"), ("bahdanau", "hard-self-critical"), ("luong-additive-nofeed", "hard-enumerate"))],
        controls=[("hard-soft-half", "hard")],
    ),
    Question("Is self-attention or convolution better after the same number of epochs?", _FAMILIES),
    Question(
        "Does a recurrent part help a Transformer after the same number of epochs?",
        [("transformer", "gru-transformer"), ("transformer", "transformer-luong")],
    ),
)
EQUAL_TIME = Question("Is self-attention or convolution better after the same training time?", _FAMILIES)
_LONGER = [(DEFAULT, other) for other in ("transformer", "gru-transformer")]
#: Of the trainings of 16 epochs: the last two also stand in the first table.
LONGER = (
    _HELPS,
    Question(_WIRING, [("bahdanau", "conditional"), ("luong-general-nofeed", DEFAULT)], change=True),
    Question("Does the score matter?", [(DEFAULT, "luong-dot-projected")], change=True),
    Question("Is self-attention better after 16 epochs?", _LONGER),
)
LONGER_EQUAL_TIME = Question(
    "Is self-attention better after the same training time, in these longer trainings?", _LONGER
)
