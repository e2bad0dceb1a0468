"""Normalisers turn energies into weights. A row without a visible slot gets zeros, never NaN.

Shapes: energies [B, H, T, S], -inf for a slot that must get no weight; visible [..., T, S], broadcast to the energies;
shares [B, H, T, S] in float32 at least, zero for invisible slots. A window's factor multiplies the shares afterwards.
"""

import math
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from nmt.attention.score_forms import AttentionPart
from nmt.kernels.dot_tanh import at_least_float32
from nmt.kernels.energies import masked_softmax
from nmt.system.limits import Amount, Limit

Alpha = Annotated[float, Limit(lambda value: 1 < value <= 4, "greater than 1, which is the softmax, and at most 4")]


class Normaliser(AttentionPart):
    """Base class of normalisers."""

    claim = ("is_softmax", False)
    #: Whether it computes `masked_softmax`, the only normaliser in the fast kernels of `nmt.kernels` and torch.
    is_softmax = False
    #: Whether the shares of a row with visible slots sum to 1.
    sums_to_one = True

    def __init__(self, heads: int = 1) -> None:
        """`heads` is the number of heads, for normalisers with separate parameters for each head."""
        super().__init__()

    def symbols(self) -> dict[str, Tensor]:
        """The values of the equation's symbols by name: one for all heads, or one per head."""
        return {}

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        """The shares of the visible slots."""
        raise TypeError(f"{type(self).__name__} does not define how it normalises")


class Softmax(Normaliser):
    """a_j = exp(e_j / tau) / sum_i exp(e_i / tau). Bahdanau, Cho, Bengio 2015, section 3.1, with a temperature."""

    equation = "a_tj = exp(e_tj / tau) / sum_i exp(e_ti / tau)"

    def __init__(self, temperature: Amount | None = 1.0, heads: int = 1) -> None:
        """`temperature` is tau; None learns a tau for each head, starting at 1."""
        super().__init__(heads)
        self.temperature = temperature
        self.log_temperature = nn.Parameter(torch.empty(heads)) if temperature is None else None
        self.reset_parameters()

    @property
    def is_softmax(self) -> bool:  # type: ignore[override]
        """Whether the temperature is fixed at 1."""
        return self.temperature == 1

    def reset_parameters(self) -> None:
        if self.log_temperature is not None:
            nn.init.zeros_(self.log_temperature)

    def symbols(self) -> dict[str, Tensor]:
        if self.log_temperature is not None:
            return {"tau": self.log_temperature.exp()}
        return {"tau": torch.tensor(self.temperature)}

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        if self.log_temperature is not None:
            visible = visible & (energies != -math.inf)  # infinite energies would make the gradient of tau NaN
            energies = at_least_float32(energies).masked_fill(~visible, 0.0)
            energies = energies * (-self.log_temperature).exp()[:, None, None]
        elif self.temperature is not None and self.temperature != 1:
            energies = at_least_float32(energies) / self.temperature
        return masked_softmax(energies, visible)


class Sink(Normaliser):
    """a_j = exp(e_j) / (exp(s) + sum_i exp(e_i)): a slot without a value takes weight, so weights sum to at most 1.

    Miller 2023, "Attention is off by one", where s is 0; Xiao et al. 2023, "Efficient streaming language models with
    attention sinks", section 3.3. Each head learns an s, starting at 0.
    """

    equation = "a_tj = exp(e_tj) / (exp(s) + sum_i exp(e_ti))"
    sums_to_one = False

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads)
        self.s = nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.s)

    def symbols(self) -> dict[str, Tensor]:
        return {"s": self.s}

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        energies = at_least_float32(energies)
        sink = self.s.to(energies.dtype)[:, None, None].expand(*energies.shape[:-1], 1)
        both = torch.cat([energies.masked_fill(~visible, -math.inf), sink], -1)
        return torch.softmax(both, -1)[..., :-1]


class Sparsemax(Normaliser):
    """a_j = max(e_j - theta, 0), the Euclidean projection of e on the simplex: exact zeros.

    Martins and Astudillo 2016, eq. 2 and algorithm 1.
    """

    equation = "a_tj = max(e_tj - theta, 0)"

    def symbols(self) -> dict[str, Tensor]:
        return {"alpha": torch.tensor(2.0)}

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        return entmax(energies, visible, 2.0)


class Entmax(Normaliser):
    """a_j = max((alpha - 1) e_j - theta, 0)^(1 / (alpha - 1)): between softmax (alpha = 1) and sparsemax (alpha = 2).

    Peters, Niculae, Martins 2019, eq. 10. A learned alpha is 1 + sigmoid(z), with a z for each head that starts at 0:
    Correia, Niculae, Martins 2019, section 3.
    """

    equation = "a_tj = max((alpha - 1) e_tj - theta, 0)^(1 / (alpha - 1))"

    def __init__(self, alpha: Alpha | None = 1.5, heads: int = 1) -> None:
        """`alpha` None learns an alpha for each head, starting at 1.5. All but fixed 1.5 and 2 need a bisection."""
        super().__init__(heads)
        self.alpha = alpha
        self.z = nn.Parameter(torch.empty(heads)) if alpha is None else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.z is not None:
            nn.init.zeros_(self.z)

    def symbols(self) -> dict[str, Tensor]:
        if self.z is None:
            return {"alpha": torch.tensor(self.alpha)}
        return {"alpha": 1 + torch.sigmoid(at_least_float32(self.z))}

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        if self.z is None:
            assert self.alpha is not None
            return entmax(energies, visible, self.alpha)
        return entmax(energies, visible, self.symbols()["alpha"][:, None, None])


def entmax(energies: Tensor, visible: Tensor, alpha: float | Tensor) -> Tensor:
    """The alpha-entmax of the visible energies [..., S]; alpha, above 1, is a number or broadcasts to [..., 1]."""
    energies = at_least_float32(energies)
    visible = visible & (energies != -math.inf)
    energies = energies.masked_fill(~visible, torch.finfo(energies.dtype).min)
    # Shares depend on differences only. NaN stays NaN, so that the loss check reports it.
    shifted = energies - energies.detach().amax(-1, keepdim=True)
    if isinstance(alpha, Tensor):
        shares = _Entmax.apply(shifted, alpha, None)  # type: ignore[no-untyped-call]
    else:
        filled = torch.full((), alpha, dtype=energies.dtype, device=energies.device)
        shares = _Entmax.apply(shifted, filled, alpha)  # type: ignore[no-untyped-call]
    masked: Tensor = shares.masked_fill(~visible, 0.0)
    return masked


class _Entmax(torch.autograd.Function):
    """Energies [..., S] with maximum 0, and alpha -> shares; `number` is alpha as a float, None for a learned alpha.

    With s_j = p_j^(2 - alpha) where p_j > 0, the Jacobian is diag(s) - s s^T / sum(s) (Peters et al. 2019, section
    3.1). The gradient of alpha is from Correia et al. 2019, proposition 1.
    """

    @staticmethod
    def forward(ctx: Any, energies: Tensor, alpha: Tensor, number: float | None) -> Tensor:
        # The threshold is at least max z - 1 = -1: no lower z has a share, and sums of z stay small.
        z = ((alpha - 1) * energies).clamp(min=-2)
        if number == 2:
            shares = (z - _sparsemax_threshold(z)).clamp(min=0)
        elif number == 1.5:
            shares = (z - _entmax15_threshold(z)).clamp(min=0) ** 2
        else:
            shares = _bisected(z, 1 / (alpha - 1))
        ctx.save_for_backward(shares, alpha)
        return shares

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (gradient,) = gradients
        shares, alpha = ctx.saved_tensors
        in_support = shares > 0
        logs = shares.where(in_support, 1).log()
        slopes = ((2 - alpha) * logs).exp() * in_support
        totals = slopes.sum(-1, keepdim=True)
        energies_grad = slopes * (gradient - (slopes * gradient).sum(-1, keepdim=True) / totals)
        if not ctx.needs_input_grad[1]:
            return energies_grad, None, None
        entropies = -shares * logs
        even = slopes / totals
        by_alpha = (shares - even) / (alpha - 1) ** 2
        by_alpha = by_alpha + (entropies - even * entropies.sum(-1, keepdim=True)) / (alpha - 1)
        return energies_grad, (gradient * by_alpha).sum_to_size(alpha.shape), None


def _sparsemax_threshold(z: Tensor) -> Tensor:
    """theta [..., 1] with sum_j max(z_j - theta, 0) = 1. Martins and Astudillo 2016, algorithm 1."""
    ordered = z.sort(-1, descending=True).values
    counts = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    thresholds = (ordered.cumsum(-1) - 1) / counts  # entry k - 1: the threshold for a support of the first k slots
    return _of_largest_support(thresholds, ordered)


def _entmax15_threshold(z: Tensor) -> Tensor:
    """theta [..., 1] with sum_j max(z_j - theta, 0)^2 = 1. Peters, Niculae, Martins 2019, algorithm 2."""
    ordered = z.sort(-1, descending=True).values
    counts = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    means = ordered.cumsum(-1) / counts
    variances = (ordered**2).cumsum(-1) / counts - means**2
    thresholds = means - ((1 - counts * variances) / counts).clamp(min=0).sqrt()
    return _of_largest_support(thresholds, ordered)


def _of_largest_support(thresholds: Tensor, ordered: Tensor) -> Tensor:
    """The threshold [..., 1] of the largest support whose slots are all above the threshold."""
    count = (thresholds < ordered).sum(-1, keepdim=True).clamp(min=1)
    return thresholds.gather(-1, count - 1)


def _bisected(z: Tensor, power: Tensor) -> Tensor:
    """max(z_j - theta, 0)^power for z with maximum 0; bisection finds the theta that makes the sum 1."""
    low = torch.full_like(z[..., :1], -1.0)
    width = 1.0
    for _ in range(2 - round(math.log2(torch.finfo(z.dtype).eps))):
        width /= 2
        middle = low + width
        low = torch.where(((z - middle).clamp(min=0) ** power).sum(-1, keepdim=True) >= 1, middle, low)
    shares = (z - low).clamp(min=0) ** power
    return shares / shares.sum(-1, keepdim=True)
