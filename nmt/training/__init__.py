"""The training room: the loop, the loss, schedules, averages, checkpoints and what is shown on the way."""

from nmt.training.loop import Outcome, TrainingLoop
from nmt.training.settings import TrainerSettings

__all__ = ["Outcome", "TrainerSettings", "TrainingLoop"]
