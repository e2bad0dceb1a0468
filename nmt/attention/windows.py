"""Windows: which memory slots may a step look at?

Shapes: queries [..., T, Dq], steps [..., T] (target positions from 0), mask [..., S] (true where the source
token is real). A window answers with a `View`, whose parts are [..., T, S] or broadcast to that. With several heads the
last of the axes before these is theirs: queries [B, H, T, Dq], steps [B, 1, T], mask [B, 1, S].

A radius of 10, as the paper has it, spans 21 slots: most sentences of a caption corpus fit in whole.
`nmt.evaluation.references.hidden_share` tells which share of the slots a trained model's windows hid.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.forms import AttentionPart
from nmt.attention.heads import HeadLinear, by_head
from nmt.kernels import plain
from nmt.kernels.dot_tanh import at_least_float32, dot_tanh
from nmt.system.errors import SettingError
from nmt.system.limits import NotNegative, Positive


class View(NamedTuple):
    """What a step may look at.

    visible: bool, true for slots that may get weight.
    bias: added to the energies before the softmax; None adds nothing.
    factor: multiplies the weights after the softmax; None leaves them as they are.
    centres [..., T]: of the window that was chosen, in slots from 0; None for one without a centre.
    """

    visible: Tensor
    bias: Tensor | None = None
    factor: Tensor | None = None
    centres: Tensor | None = None

    def __and__(self, other: "View") -> "View":
        """The intersection: slots visible in both, the sum of the biases, the product of the factors."""
        return View(
            self.visible & other.visible,
            _combined(torch.add, self.bias, other.bias),
            _combined(torch.mul, self.factor, other.factor),
            self.centres,
        )


def _combined(operation: Callable[[Tensor, Tensor], Tensor], one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return operation(one, other)


class Window(AttentionPart):
    """The contract."""

    claim = ("is_everything", False)
    #: Whether it shows all real positions alike: no bias, no factor.
    is_everything = False
    #: Whether what it shows depends on how many slots there will be.
    needs_length = False
    #: The first step that is shown a slot after its own, whatever the text; None if there is none.
    first_ahead: int | None = None

    def __init__(self, query_size: int, heads: int = 1) -> None:
        """The size of one head's query and the number of heads, for windows that are predicted from queries."""
        super().__init__()
        self.query_size, self.heads = query_size, heads

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        """The view of each step."""
        raise TypeError(f"{type(self).__name__} does not say which slots are visible")


class Global(Window):
    """All real positions. Luong, Pham, Manning 2015, section 3.1."""

    is_everything = True

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        return View(mask.unsqueeze(-2))


class Causal(Window):
    """Slots j <= t. Vaswani et al. 2017, section 3.2.3 (masked self-attention)."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        positions = torch.arange(mask.shape[-1], device=mask.device)
        return View(mask.unsqueeze(-2) & (positions <= steps.unsqueeze(-1)))


class LocalMonotonic(Window):
    """Slots j in [p_t - D, p_t + D] around p_t = t. Luong, Pham, Manning 2015, section 3.2 (local-m).

    p_t is held at the sentence's last real position when the target is longer than the source.
    """

    def __init__(self, query_size: int, radius: NotNegative, heads: int = 1) -> None:
        """`radius` is the paper's D, in source positions."""
        super().__init__(query_size, heads)
        self.radius = radius

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        positions = torch.arange(mask.shape[-1], device=mask.device)
        centres = torch.minimum(steps, mask.sum(-1, keepdim=True) - 1)
        visible = (positions - centres.unsqueeze(-1)).abs() <= self.radius
        return View(mask.unsqueeze(-2) & visible, centres=centres)


class LocalPredictive(Window):
    """Slots j in [p_t - D, p_t + D] around p_t = S sigmoid(v^T tanh(W q_t)), which is real (local-p).

    Luong, Pham, Manning 2015, eq. 9; S is the sentence's own length. The weights are multiplied by
    exp(-(j - p_t)^2 / (2 sigma^2)), sigma = D / 2 (eq. 10), and not renormalised; p_t learns through that factor alone.
    """

    needs_length = True

    def __init__(self, query_size: int, radius: Positive, heads: int = 1) -> None:
        """`radius` is the paper's D, in source positions."""
        super().__init__(query_size, heads)
        self.radius = radius
        self.W = HeadLinear(query_size, query_size, heads)
        self.v = nn.Parameter(torch.empty(heads * query_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make v uniform within D^-1/2, so that p_t starts near the middle of the sentence."""
        bound = self.query_size**-0.5
        nn.init.uniform_(self.v, -bound, bound)

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        # In float32: positions in the dozens need more digits than bfloat16 has.
        with plain():
            place = dot_tanh(by_head(self.v, self.heads), self.W(queries).unsqueeze(-2))
        centres = mask.sum(-1)[..., None, None] * torch.sigmoid(place)  # eq. 9, [..., T, 1]
        offset = torch.arange(mask.shape[-1], device=mask.device) - centres
        factor = torch.exp(-(offset**2) / (2 * (self.radius / 2) ** 2))
        visible = mask.unsqueeze(-2) & (offset.abs() <= self.radius)
        return View(visible, factor=factor, centres=centres.squeeze(-1))


class Relative(Window):
    """All real positions, with the bias q_t^T a_(clip(j - t)) / Dq^1/2. Shaw, Uszkoreit, Vaswani 2018, eq. 4 and 5.

    clip keeps distances within [-K, K]; a is a vector for each of them. In self-attention with the scaled dot product
    energies become q_t^T (k_j + a) / Dq^1/2. The paper's vectors on the values are left out, as are its shared heads.
    """

    def __init__(self, query_size: int, distance: Positive, heads: int = 1) -> None:
        """`distance` is the paper's k, beyond which distances are alike."""
        super().__init__(query_size, heads)
        self.distance = distance
        self.a = HeadLinear(query_size, 2 * distance + 1, heads)

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        by_distance = at_least_float32(self.a(queries)) * self.query_size**-0.5  # [..., T, 2K + 1]
        positions = torch.arange(mask.shape[-1], device=mask.device)
        distances = (positions - steps.unsqueeze(-1)).clamp(-self.distance, self.distance) + self.distance
        return View(mask.unsqueeze(-2), bias=by_distance.take_along_dim(distances, -1))


#: What each step may look at: a slot, several, [] for none or None for all. Later steps look at all.
Slots = Sequence[int | Sequence[int] | None]
#: The same as the slots of the steps that may not look at all, by step.
Pins = Mapping[int, Sequence[int]]
_EXAMPLE = "[0,[1,2],null]"


def pins_of(slots: Slots) -> Pins:
    """The pins that a list with an entry for each step stands for.

    Raises:
        SettingError: the list is empty, or an entry is not a slot, a list of slots or null.
    """
    if not isinstance(slots, list | tuple):
        raise SettingError("slots", slots, f"must be a list with an entry for each step: {_EXAMPLE}.")
    if not slots:
        rule = f"must name the slots of one step at least: {_EXAMPLE}. Or take attention/window=global."
        raise SettingError("slots", slots, rule)
    pins = {}
    for step, entry in enumerate(slots):
        if entry is None:
            continue
        row = [entry] if type(entry) is int else entry
        if not isinstance(row, list | tuple) or any(type(slot) is not int or slot < 0 for slot in row):
            rule = f"step {step} must have a source position from 0, a list of them, or null for all: {_EXAMPLE}."
            raise SettingError("slots", slots, rule)
        pins[step] = list(row)
    return pins


class Pinned(Window):
    """Slots that a person names, step by step (`attention/window=forced`): to see what a step's attention changes."""

    def __init__(self, query_size: int, slots: Slots, heads: int = 1) -> None:
        """A step looks at nothing in a sentence that has none of its slots.

        Raises:
            SettingError: see `pins_of`.
        """
        super().__init__(query_size, heads)
        pins = pins_of(slots)
        self.first_ahead = next((step for step, row in pins.items() if max(row, default=-1) > step), None)
        # Row t of [N + 1, K] names the slots of step t, padded with -1; the last row is for all later steps.
        rows = [list(pins.get(step, ())) for step in range(len(slots) + 1)]
        most = max(1, *map(len, rows))
        self.named: Tensor
        self.free: Tensor
        named = torch.tensor([row + [-1] * (most - len(row)) for row in rows])
        self.register_buffer("named", named, persistent=False)
        self.register_buffer("free", torch.tensor([*(entry is None for entry in slots), True]), persistent=False)

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        rows = steps.clamp(max=len(self.free) - 1)
        positions = torch.arange(mask.shape[-1], device=mask.device)
        named = (self.named[rows].unsqueeze(-1) == positions).any(-2)  # [B, T, K, 1] == [S], any of K
        return View(mask.unsqueeze(-2) & (named | self.free[rows].unsqueeze(-1)))
