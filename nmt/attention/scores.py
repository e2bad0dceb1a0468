"""Scores measure how well each memory slot matches the query. A score computes its equation only.

`Attention` applies the mask, the softmax and the sum. A score depends on the last two axes only, so that a single
step (T = 1), a whole sequence and the hypotheses of a beam share one implementation. Under autocast, projections are
in bfloat16 and energies in float32: rounded to bfloat16, an energy of 40 would be wrong by up to an eighth.

Shapes: queries [..., T, Dq], keys as `prepare` returns them [..., S, Dk], energies [..., T, S]. With several heads, the
head axis comes directly before these: queries [B, H, T, Dq].
"""

import math

import torch
from torch import Tensor, nn

from nmt.attention.head_parameters import HeadLinear, by_head, multiply
from nmt.attention.score_forms import AdditiveForm, AttentionPart, Form, Product, Terms
from nmt.kernels.dot_tanh import at_least_float32, dot_tanh
from nmt.system.errors import SettingError, UserError
from nmt.system.limits import Positive


class Score(AttentionPart):
    """Base class of scores: `prepare` runs once per sentence, `forward` at every step.

    A score without parameters may ignore heads. With parameters, each head has separate ones: matrices are
    `HeadLinear`, vectors [H * A] are used through `by_head`, and `reset_parameters` initialises the vectors.
    """

    claim = ("form", None)
    #: Whether energies depend on the contents of slots; `Location` depends on their positions.
    compares_keys = True
    #: Whether queries and keys are projected for one head too, unless `attention.project` says otherwise.
    wants_projections = False
    #: The number of slots, counted from the first, that can get weight; None for all.
    max_positions: int | None = None
    #: The equation's form, which fast kernels and exporters may compute instead; None for any other equation.
    form: Form | None = None
    #: The equation's terms for the queries, and for the keys as `prepare` returns them.
    query_name, key_name = "q_t", "k_j"

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        """Sizes for one head: of a query, of a memory slot, and of the space in which some scores compare both."""
        super().__init__()
        self.query_size, self.key_size, self.size, self.heads = query_size, key_size, size, heads

    def prepare(self, values: Tensor) -> Tensor:
        """Keys [..., S, Dk] from values [..., S, Dv]: the part of the equation that does not depend on the query."""
        return values

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Energies [..., T, S]; -inf for a slot that must get no weight."""
        raise TypeError(f"{type(self).__name__} does not define its equation")

    def terms(self, queries: Tensor, keys: Tensor) -> Terms:
        """The terms of the energies of queries [..., T, Dq] and prepared keys [..., S, Dk]."""
        left, kind, scale, v = queries, None, 1.0, None
        if isinstance(self.form, AdditiveForm):
            left, kind = multiply(by_head(self.form.query_weight, self.heads), queries), "additive"
            v = by_head(self.form.v, self.heads)
        elif isinstance(self.form, Product):
            kind, scale = "product", self.form.scale
        return Terms(kind, self.query_name, left, self.key_name, keys, scale, v)

    def cover(self) -> None:
        """Add a coverage term to the equation; `forward` then also takes the coverage [..., T, S].

        Raises:
            SettingError: the score does not support coverage.
        """
        rule = "only the additive score has a coverage. Give attention/score=additive, or leave {key}.coverage out."
        raise SettingError("coverage", "true", rule)


class Additive(Score):
    """Bahdanau, Cho, Bengio 2015, section 3.1 and appendix A.1.2.

    With coverage, e_tj = v^T tanh(W q_t + U k_j + w cov_tj), where cov_tj is the sum of the weights that slot j got
    before step t. Tu et al. 2016, section 3; See, Liu, Manning 2017, eq. 10 and 11.
    """

    equation = "e_tj = v^T tanh(W q_t + U k_j)"
    query_name, key_name = "W q_t", "U k_j"

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        self.W = HeadLinear(query_size, size, heads, gain=4.0)
        self.U = HeadLinear(key_size, size, heads, gain=4.0)
        self.v = nn.Parameter(torch.empty(heads * size))
        self.w: nn.Parameter | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make v uniform within 8 / sqrt(A), and w zero.

        The states start about as small as the embeddings. For small inputs tanh is almost linear, so the query adds
        the same to the energy of every slot and learns nothing: hence the large v, and the gain of 4 for W and U. A
        larger gain would saturate tanh later, because the states grow (docs/results.md).
        """
        reset_v(self.v, self.size)
        if self.w is not None:
            nn.init.zeros_(self.w)

    def cover(self) -> None:
        self.w = nn.Parameter(torch.zeros(self.heads * self.size))

    def prepare(self, values: Tensor) -> Tensor:
        return self.U(values)

    @property
    def form(self) -> AdditiveForm | None:  # type: ignore[override]
        """The additive form; None with coverage, which the form does not support."""
        return AdditiveForm(self.W.weight, self.v) if self.w is None else None

    def forward(self, queries: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        terms = [self.W(queries).unsqueeze(-2), keys.unsqueeze(-3)]
        if coverage is not None:
            assert self.w is not None
            terms.append(coverage.unsqueeze(-1) * by_head(self.w, self.heads)[..., None, None, :])
        return dot_tanh(by_head(self.v, self.heads), *terms)

    def terms(self, queries: Tensor, keys: Tensor) -> Terms:
        w = None if self.w is None else by_head(self.w, self.heads)
        v = by_head(self.v, self.heads)
        return Terms("additive", self.query_name, self.W(queries), self.key_name, keys, v=v, w=w)


def reset_v(v: Tensor, size: int) -> None:
    """Make the v of an additive score uniform within 8 / sqrt(A); see `Additive.reset_parameters`."""
    bound = 8 * size**-0.5
    nn.init.uniform_(v, -bound, bound)


class Concat(Score):
    """Luong, Pham, Manning 2015, section 3.1, after eq. 7.

    The same function class as `Additive`: the two halves of W are the other's W and U. Expect equal results.
    """

    equation = "e_tj = v^T tanh(W [q_t; k_j])"
    query_name, key_name = "W [q_t; 0]", "W [0; k_j]"

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        self.W = HeadLinear(query_size + key_size, size, heads, gain=4.0)
        self.v = nn.Parameter(torch.empty(heads * size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make v uniform within 8 / sqrt(A); see `Additive.reset_parameters`."""
        reset_v(self.v, self.size)

    def prepare(self, values: Tensor) -> Tensor:
        return multiply(by_head(self.W.weight[:, self.query_size :], self.heads), values)

    @property
    def form(self) -> AdditiveForm:  # type: ignore[override]
        """The additive form with the query's columns of W; the keys are already multiplied by the memory's columns."""
        return AdditiveForm(self.W.weight[:, : self.query_size], self.v)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        projected = multiply(by_head(self.W.weight[:, : self.query_size], self.heads), queries)
        terms = (projected.unsqueeze(-2), keys.unsqueeze(-3))
        return dot_tanh(by_head(self.v, self.heads), *terms)


def dot(queries: Tensor, keys: Tensor) -> Tensor:
    """q^T k [..., T, S], for queries [..., T, D] and keys [..., S, D]."""
    with torch.autocast(queries.device.type, enabled=False):
        return at_least_float32(queries) @ at_least_float32(keys).transpose(-1, -2)


class General(Score):
    """Luong, Pham, Manning 2015, section 3.1. W k is computed once per sentence."""

    equation = "e_tj = q_t^T W k_j"
    key_name = "W k_j"

    form = Product()

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        # Like the root of a scaled dot product, the gain keeps a fresh model from putting all weight on one slot.
        self.W = HeadLinear(key_size, query_size, heads, gain=query_size**-0.5)

    def prepare(self, values: Tensor) -> Tensor:
        return self.W(values)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return dot(queries, keys)


class Dot(Score):
    """Luong, Pham, Manning 2015, section 3.1. Needs queries and keys of equal size."""

    equation = "e_tj = q_t^T k_j"

    form = Product()

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        if query_size != key_size:
            raise UserError(
                f"This score needs queries and keys of equal size, but the decoder's state has {query_size} "
                f"and the encoder's {key_size}. Give decoder.size={key_size}, attention.project=true, or "
                f"attention/score=general."
            )

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return dot(queries, keys)


class ScaledDot(Dot):
    """Vaswani et al. 2017, eq. 1; Dk is the size of a key.

    The paper's queries and keys are projections. Without projections, the energies of recurrent states stay so even
    that nothing is learned, while `Dot` learns from the same states (docs/attention-study.md).
    """

    equation = "e_tj = q_t^T k_j / sqrt(Dk)"

    wants_projections = True

    @property
    def form(self) -> Product:  # type: ignore[override]
        """The product form with the scale Dk^-1/2."""
        return Product(self.key_size**-0.5)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return dot(queries, keys) / math.sqrt(keys.shape[-1])


class Location(Score):
    """An energy for each position, keys unused. Luong, Pham, Manning 2015, eq. 8.

    W_a has `positions` rows. Short sentences use the first of them; positions beyond the table get no weight.
    """

    equation = "e_tj = (W_a q_t)_j"
    key_name = "row j of W_a"

    compares_keys = False

    def __init__(self, query_size: int, key_size: int, size: int, positions: Positive, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        self.W = HeadLinear(query_size, positions, heads)
        self.max_positions = positions

    def prepare(self, values: Tensor) -> Tensor:
        return values[..., :0]

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        slots = keys.shape[-2]
        table = by_head(self.W.weight, self.heads)[..., :slots, :]
        with torch.autocast(queries.device.type, enabled=False):
            energies = multiply(at_least_float32(table), at_least_float32(queries))
        return nn.functional.pad(energies, (0, slots - energies.shape[-1]), value=-math.inf)

    def terms(self, queries: Tensor, keys: Tensor) -> Terms:
        rows = by_head(self.W.weight, self.heads)[..., : keys.shape[-2], :]
        rows = nn.functional.pad(rows, (0, 0, 0, keys.shape[-2] - rows.shape[-2]))  # beyond the table: no weight
        return Terms("product", self.query_name, queries, self.key_name, rows)


class Cosine(Dot):
    """The strength g = sqrt(Dk) e^s is learned. Graves, Wayne, Danihelka 2014, eq. 5 and 6."""

    equation = "e_tj = g cos(q_t, k_j)"
    query_name, key_name = "q_t / |q_t|", "k_j / |k_j|"

    def __init__(self, query_size: int, key_size: int, size: int, heads: int = 1) -> None:
        super().__init__(query_size, key_size, size, heads)
        self.s = nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make s zero: g starts at sqrt(Dk), for energies as large as the scaled dot products of normal vectors."""
        nn.init.zeros_(self.s)

    def prepare(self, values: Tensor) -> Tensor:
        return _unit(values)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self._strength(keys)[..., None] * dot(_unit(queries), keys)

    def _strength(self, keys: Tensor) -> Tensor:
        return math.sqrt(keys.shape[-1]) * by_head(self.s, self.heads).exp()

    def terms(self, queries: Tensor, keys: Tensor) -> Terms:
        scale = self._strength(keys).flatten()
        return Terms("product", self.query_name, _unit(queries), self.key_name, keys, scale)


def _unit(vectors: Tensor) -> Tensor:
    """The vectors, scaled to length 1."""
    return nn.functional.normalize(at_least_float32(vectors), dim=-1)
