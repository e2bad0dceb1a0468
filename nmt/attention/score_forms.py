"""Forms describe a score's equation for fast kernels and exporters, which compute the same in another way.

These check a part's form, never its class. A subclass with another equation must declare its form again.
"""

from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn


class Product(NamedTuple):
    """e_tj = scale q_t^T k_j, for keys k as `Score.prepare` returns them."""

    scale: float = 1.0


class AdditiveForm(NamedTuple):
    """e_tj = v^T tanh(W q_t + k_j), for keys k as `Score.prepare` returns them.

    query_weight W [H * A, Dq], v [H * A].
    """

    query_weight: Tensor
    v: Tensor


Form = Product | AdditiveForm


class Terms(NamedTuple):
    """The terms of an energy, for displays that show how it is computed.

    left [..., T, D] and right [..., S, D] are the terms of queries and keys. Kind "product": e_tj = scale left_t^T
    right_j, with one scale, or one per head. Kind "additive": e_tj = v^T tanh(left_t + right_j + w cov_tj), with v and
    w [D] or [H, D]. Kind None: any other equation.
    """

    kind: str | None
    left_name: str
    left: Tensor
    right_name: str
    right: Tensor
    scale: float | Tensor = 1.0
    v: Tensor | None = None
    w: Tensor | None = None


class AttentionPart(nn.Module):
    """Base class of scores, windows, normalisers and reads."""

    #: The class attribute by which fast kernels and exporters recognise a part, and its value in any other part.
    claim: ClassVar[tuple[str, object]]
    #: The name of the choice, set by `nmt.build`, and the equation, to show them with a translation.
    choice, equation = "", ""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Reset the attribute of `claim` in a subclass that overrides the computation without setting it."""
        super().__init_subclass__(**settings)
        name, nothing = cls.claim
        if {"forward", "prepare"} & vars(cls).keys() and name not in vars(cls):
            setattr(cls, name, nothing)

    def reset_parameters(self) -> None:
        """Initialise the vectors that the class itself owns."""
