"""Forms: what a score computes, for fast forms and exporters that compute the same in another way.

They ask a part for its form, never for its class. A subclass with another equation has to claim a form anew.
"""

from typing import Any, NamedTuple

from torch import Tensor


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


def withdraw(part: type[Any], claim: str, value: object) -> None:
    """Set the class attribute `claim` to `value` in a subclass that defines a computation and not the claim."""
    if {"forward", "prepare"} & vars(part).keys() and claim not in vars(part):
        setattr(part, claim, value)
