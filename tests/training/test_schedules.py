"""Learning-rate schedules, by hand."""

import math

import pytest

from nmt.system.errors import UserError
from nmt.system.limits import checked
from nmt.training.schedules import Constant, CosineDecay, InverseSquareRoot, Schedule


@pytest.mark.parametrize("schedule", [Constant(4), CosineDecay(4), InverseSquareRoot(4)])
def test_the_warm_up_is_linear_and_ends_at_the_full_rate(schedule: Schedule) -> None:
    assert [schedule.factor(step, 0.0) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert schedule.factor(4, 0.0) == pytest.approx(1.0)


def test_a_cosine_falls_over_the_budget() -> None:
    schedule = CosineDecay(0, floor=0.1)
    for progress, factor in ((0, 1.0), (0.5, 0.55), (1, 0.1), (1.7, 0.1), (-1, 1.0)):
        assert schedule.factor(9, progress) == pytest.approx(factor)
    assert schedule.factor(9, 1 / 3) == pytest.approx(0.1 + 0.9 * 0.75)  # cos 60 degrees is a half


def test_the_inverse_square_root_falls_with_the_steps() -> None:
    schedule = InverseSquareRoot(100)
    assert schedule.factor(400, 0.9) == pytest.approx(0.5)
    assert schedule.factor(900, 0.0) == pytest.approx(1 / 3)
    assert InverseSquareRoot(0).factor(16, 0.5) == pytest.approx(0.25)
    assert math.isfinite(InverseSquareRoot(0).factor(0, 0.0))


def test_a_constant_rate_stays() -> None:
    assert {Constant(3).factor(step, step / 50) for step in range(3, 50)} == {1.0}


def test_a_negative_warm_up_is_refused() -> None:
    with pytest.raises(UserError, match=r"schedule\.warmup_steps=-1: must be at least 0"):
        checked(Constant, {"warmup_steps": -1}, "schedule")
