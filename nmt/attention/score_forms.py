"""Forms: what a score computes, for fast forms and exporters that compute the same in another way.

They ask a part for its form, never for its class. A subclass with another equation has to claim a form anew.
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
    """What queries and keys are where they meet: for people who look at an energy.

    left [..., T, D] and right [..., S, D], each after its name. As a "product" e_tj = scale left_t^T right_j, with a
    scale for all heads or one a head; as "additive" e_tj = v^T tanh(left_t + right_j + w cov_tj), v and w [H, D] or
    [D]; with kind None the equation says how.
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
    """What scores, windows, normalisers and reads have in common."""

    #: The class attribute that claims a form, and its value in a part that claims none.
    claim: ClassVar[tuple[str, object]]
    #: The name of the choice, as `nmt.build` sets it, and the equation, for people who look at a translation.
    choice, equation = "", ""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Withdraw the claim of a subclass that defines a computation and not the claim."""
        super().__init_subclass__(**settings)
        name, nothing = cls.claim
        if {"forward", "prepare"} & vars(cls).keys() and name not in vars(cls):
            setattr(cls, name, nothing)

    def reset_parameters(self) -> None:
        """Set the vectors that the class owns to their first values."""
