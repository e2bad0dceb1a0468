"""Windows determine which memory slots a step may attend to.

Shapes: queries [..., T, Dq], steps [..., T] (target positions from 0), mask [..., S] (true where the source
token is real). A window returns a `View`, whose parts are [..., T, S] or broadcast to it. With several heads, the
head axis comes directly before these: queries [B, H, T, Dq], steps [B, 1, T], mask [B, 1, S].

The paper's radius of 10 spans 21 slots, which covers most sentences of a caption corpus completely.
`nmt.evaluation.references.hidden_share` measures the share of slots that a trained model's windows hide.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.head_parameters import HeadLinear, by_head
from nmt.attention.score_forms import AttentionPart
from nmt.kernels import plain
from nmt.kernels.dot_tanh import at_least_float32, dot_tanh
from nmt.system.errors import SettingError
from nmt.system.limits import NotNegative, Positive


class View(NamedTuple):
    """The slots that a step may attend to.

    visible: bool, true for slots that may get weight.
    bias: added to the energies before the softmax; None for no bias.
    factor: multiplies the weights after the softmax; None for no factor.
    centres [..., T]: the centre of the configured window, in slots from 0; None for a window without a centre.
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
    """Base class of windows."""

    claim = ("is_everything", False)
    #: Whether all real positions are visible, without a bias or a factor.
    is_everything = False
    #: Whether the view depends on the final number of slots.
    needs_length = False
    #: The first step that a fixed setting lets see a later slot than its own; None if there is none.
    first_ahead: int | None = None
    #: Whether the context gets additional vectors that depend on the positions of slots: see `added`.
    adds_values = False

    def __init__(self, query_size: int, heads: int = 1) -> None:
        """The size of one head's query and the number of heads, for windows that are predicted from queries."""
        super().__init__()
        self.query_size, self.heads = query_size, heads

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        """The view of each step."""
        raise TypeError(f"{type(self).__name__} does not say which slots are visible")

    def added(self, weights: Tensor, steps: Tensor) -> Tensor:
        """The vectors [..., T, Dq] that weights [..., T, S] at steps [..., T] add to the context."""
        raise TypeError(f"{type(self).__name__} adds nothing")


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

    p_t stays at the sentence's last real position if the target is longer than the source.
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
    """Slots j in [p_t - D, p_t + D] around the real number p_t = S sigmoid(v^T tanh(W q_t)) (local-p).

    Luong, Pham, Manning 2015, eq. 9; S is the sentence's length without padding. The weights are multiplied by
    exp(-(j - p_t)^2 / (2 sigma^2)), sigma = D / 2 (eq. 10), and not renormalised; only this factor trains p_t.
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
        """Make v uniform within Dq^-1/2, so that p_t starts near the middle of the sentence."""
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
    """All real positions, with the bias q_t^T a_(clip(j - t)) / Dq^1/2. Shaw, Uszkoreit, Vaswani 2018, eq. 3 to 5.

    clip limits distances to [-K, K]; each distance and each head has a vector a, as in the paper's base model. In
    self-attention with the scaled dot product, energies become q_t^T (k_j + a) / Dq^1/2. With `values`, each distance
    has a second vector a', which is added to values: c_t = sum_j a_tj (v_j + a'_(clip(j - t))).
    """

    def __init__(self, query_size: int, distance: Positive, values: bool = False, heads: int = 1) -> None:
        """`distance` is the paper's k, to which distances are clipped. With `values`, values have the query's size."""
        super().__init__(query_size, heads)
        self.distance, self.adds_values = distance, values
        self.a = HeadLinear(query_size, 2 * distance + 1, heads)
        self.of_values = HeadLinear(query_size, 2 * distance + 1, heads) if values else None

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        by_distance = at_least_float32(self.a(queries)) * self.query_size**-0.5  # [..., T, 2K + 1]
        return View(
            mask.unsqueeze(-2), bias=by_distance.take_along_dim(_distances(steps, mask.shape[-1], self.distance), -1)
        )

    def added(self, weights: Tensor, steps: Tensor) -> Tensor:
        assert self.of_values is not None
        distances = _distances(steps, weights.shape[-1], self.distance).expand(weights.shape)
        by_distance = weights.new_zeros(*weights.shape[:-1], 2 * self.distance + 1).scatter_add(-1, distances, weights)
        return by_distance @ by_head(self.of_values.weight, self.heads)


class SinusoidalDistances(Window):
    """All real positions, with Transformer-XL's bias (q_t + w)^T W_R R_(t - j) / Dq^1/2. Dai et al. 2019, 3.3.

    R are sinusoids of the distance, which is not clipped. The paper's energies, before the division, are (q + u)^T k_j
    + (q + v)^T W_R R_(t - j), for a query q projected without a bias. Here the projection's bias is u: q_t is q + u,
    and w is v - u.
    """

    def __init__(self, query_size: int, size: int, vectors: Callable[[Tensor, int], Tensor], heads: int = 1) -> None:
        """`vectors` returns the vectors R [N, `size`] of distances [N], called with the distances and `size`."""
        super().__init__(query_size, heads)
        self.size, self.vectors = size, vectors
        self.W_R = HeadLinear(size, query_size, heads)
        self.w = nn.Parameter(torch.empty(heads * query_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make w zero: u and v start equal."""
        nn.init.zeros_(self.w)

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        most = mask.shape[-1] - 1  # the largest distance of slots from a step that is itself a slot
        distances = torch.arange(most, -most - 1, -1, device=mask.device)  # t - j; in `Relative`, j - t
        vectors = self.vectors(distances, self.size).to(self.W_R.weight.dtype).unsqueeze(-3)
        with torch.autocast(queries.device.type, enabled=False):
            asked = at_least_float32(queries) + at_least_float32(by_head(self.w, self.heads)).unsqueeze(-2)
            by_distance = asked @ at_least_float32(self.W_R(vectors)).transpose(-1, -2) * self.query_size**-0.5
        return View(mask.unsqueeze(-2), bias=by_distance.take_along_dim(_distances(steps, most + 1, most), -1))


def _distances(steps: Tensor, slots: int, most: int) -> Tensor:
    """Indices [..., T, S] of the distances j - t, clipped to [-most, most]; index 0 is the distance -most."""
    positions = torch.arange(slots, device=steps.device)
    return (positions - steps.unsqueeze(-1)).clamp(-most, most) + most


#: The visible slots of each step: a slot, a list of slots ([] for none), or None for all. Later steps see all slots.
Slots = Sequence[int | Sequence[int] | None]


class Pin(NamedTuple):
    """The slots to which a step is pinned, and their total weight from 0 to 1; the other slots share the rest."""

    slots: Sequence[int]
    weight: float = 1.0


#: The pins of a sentence by step, for pinned steps only. A plain list of slots gets all of the weight.
Pins = Mapping[int, Sequence[int] | Pin]
_EXAMPLE = "[0,[1,2],null]"


def pins_of(slots: Slots) -> dict[int, list[int]]:
    """Convert `slots`, a list with an entry for each step, to pins by step.

    Raises:
        SettingError: the list is empty, or an entry is not a slot, a list of slots or null.
    """
    if not isinstance(slots, list | tuple):
        raise SettingError("slots", slots, f"must be a list with an entry for each step: {_EXAMPLE}.")
    if not slots:
        rule = f"must name the slots of one step at least: {_EXAMPLE}. Or take attention/window=global."
        raise SettingError("slots", slots, rule)
    pins = dict[int, list[int]]()
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
    """Slots that the user names for each step (`attention/window=forced`), to see what a step's attention changes."""

    def __init__(self, query_size: int, slots: Slots, heads: int = 1) -> None:
        """`slots` has an entry for each step. A step sees nothing in a sentence that has none of its slots.

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
