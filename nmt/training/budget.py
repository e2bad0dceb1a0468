"""The training budget: steps, epochs or minutes, whichever is used up first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Spent(NamedTuple):
    """The budget used so far: updates, epochs (with fractions), minutes of all sessions."""

    steps: int
    epochs: float
    minutes: float


@dataclass(frozen=True)
class Budget:
    """The limits of a training; None means no limit."""

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits that are set, by name."""
        limits = {name: getattr(self, name) for name in Spent._fields}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def shares(self, spent: Spent) -> dict[str, float]:
        """The used share of each limit."""
        return {name: getattr(spent, name) / limit for name, limit in self.limits.items()}

    def share(self, spent: Spent) -> float:
        """The used share of the nearest limit."""
        return max(self.shares(spent).values())

    def used_up(self, spent: Spent) -> str | None:
        """The name of the first limit that is reached, else None."""
        return next((name for name, share in self.shares(spent).items() if share >= 1), None)

    def seconds_left(self, spent: Spent, seconds_per_step: float, steps_per_epoch: float) -> float:
        """The seconds to the nearest limit at this speed."""
        seconds = {"steps": seconds_per_step, "epochs": steps_per_epoch * seconds_per_step, "minutes": 60.0}
        return min(float(limit - getattr(spent, name)) * seconds[name] for name, limit in self.limits.items())
