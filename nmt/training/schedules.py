"""Learning-rate schedules: factors that multiply the configured learning rate.

`progress` is the used share of the budget, in steps, epochs or minutes, whichever is largest.
"""

import math

from nmt.system.limits import NotNegative, Probability


class Schedule:
    """Base class of schedules: a linear warm-up, then `decay`."""

    def __init__(self, warmup_steps: NotNegative = 0) -> None:
        """The rate rises linearly over `warmup_steps` updates."""
        self.warmup_steps = warmup_steps

    def factor(self, step: int, progress: float) -> float:
        """The factor for update number `step`, counted from 0."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        return self.decay(step, min(max(progress, 0.0), 1.0))

    def decay(self, step: int, progress: float) -> float:
        """The factor after the warm-up."""
        raise TypeError(f"{type(self).__name__} does not define decay")


class Constant(Schedule):
    """A constant learning rate after the warm-up."""

    def decay(self, step: int, progress: float) -> float:
        return 1.0


class CosineDecay(Schedule):
    """Half a cosine from the full rate to `floor` of it over the budget. Loshchilov and Hutter 2017, eq. 5."""

    def __init__(self, warmup_steps: NotNegative = 0, floor: Probability = 0.0) -> None:
        super().__init__(warmup_steps)
        self.floor = floor

    def decay(self, step: int, progress: float) -> float:
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * progress))


class InverseSquareRoot(Schedule):
    """sqrt(warmup / step). Vaswani et al. 2017, section 5.3."""

    def decay(self, step: int, progress: float) -> float:
        return math.sqrt(max(self.warmup_steps, 1) / max(step, 1))
