"""Budgets by hand: what is used, what ends a training, how long it still takes."""

import pytest

from nmt.training.budget import Budget, Spent


def test_the_nearest_limit_counts() -> None:
    budget = Budget(steps=200, epochs=4, minutes=50)
    spent = Spent(steps=50, epochs=3, minutes=5)
    assert budget.shares(spent) == {"steps": 0.25, "epochs": 0.75, "minutes": 0.1}
    assert budget.share(spent) == 0.75
    assert budget.used_up(spent) is None


def test_limits_that_are_not_set_play_no_part() -> None:
    budget = Budget(epochs=2.5)
    assert budget.limits == {"epochs": 2.5}
    assert budget.shares(Spent(10**9, 0.5, 10**9)) == {"epochs": 0.2}


@pytest.mark.parametrize(
    ("spent", "name"),
    [
        (Spent(9, 1.9, 4.9), None),
        (Spent(10, 0, 0), "steps"),
        (Spent(0, 2, 0), "epochs"),
        (Spent(0, 0, 5), "minutes"),
        (Spent(11, 3, 7), "steps"),
    ],
)
def test_the_first_limit_that_is_reached_is_named(spent: Spent, name: str | None) -> None:
    assert Budget(10, 2, 5).used_up(spent) == name


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        (Budget(steps=30), 40.0),  # 20 steps of 2 seconds
        (Budget(epochs=3), 28.0),  # two epochs of 7 steps
        (Budget(minutes=1.5), 60.0),
        (Budget(steps=30, epochs=3, minutes=1.5), 28.0),
    ],
)
def test_the_time_that_is_left(budget: Budget, seconds: float) -> None:
    assert budget.seconds_left(Spent(10, 1, 0.5), seconds_per_step=2, steps_per_epoch=7) == seconds
