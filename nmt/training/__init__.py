"""The training room: the loop, the loss, schedules, averages of the weights, checkpoints and progress."""

from nmt.training.loop import Outcome, TrainingLoop
from nmt.training.settings import TrainerSettings

__all__ = ["Outcome", "TrainerSettings", "TrainingLoop"]
