"""The training room: the loop, the loss, schedules, averages, checkpoints and what is shown on the way."""

from nmt.training.trainer import Outcome, Trainer

__all__ = ["Outcome", "Trainer"]
