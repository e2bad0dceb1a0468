"""The settings of a training, which `configs/trainer/default.yaml` documents."""

from dataclasses import dataclass
from typing import Literal

from nmt.system.errors import UserError
from nmt.system.limits import Amount, Fraction, NotNegative, Positive, Probability, Weight
from nmt.training.budget import Budget


@dataclass(frozen=True, kw_only=True)
class TrainerSettings:
    """The settings of the training loop. The yaml file explains each; `nmt.system.limits` checks their type hints.

    Raises:
        UserError: there is no budget, or both `r_drop` and `simcut` are set.
    """

    steps: Positive | None
    epochs: Amount | None
    minutes: Amount | None
    tokens_per_batch: Positive
    sentences_per_batch: Positive | None
    accumulate: Positive
    clip_norm: Weight
    label_smoothing: Fraction
    scheduled_sampling: Probability
    average: Literal["none", "ema", "checkpoints"]
    ema_decay: Fraction
    average_checkpoints: Positive
    validate_every: Positive | None
    validate_sentences: Positive
    select: Literal["bleu", "perplexity", "last"]
    patience: Positive | None
    save_minutes: Weight
    log_seconds: Weight
    samples: NotNegative
    max_source_length: Positive
    max_target_length: Positive
    workers: Positive
    tensorboard: bool
    guided_alignment: Weight
    guided_head: str | None
    r_drop: Weight
    simcut: Weight
    skipped_updates: Positive
    graphs: Literal["auto", "always", "never"]

    def __post_init__(self) -> None:
        if not self.budget.limits:
            raise UserError("There is no budget. Give trainer.steps, trainer.epochs or trainer.minutes.")
        if self.r_drop and self.simcut:
            raise UserError(
                f"trainer.r_drop={self.r_drop:g} and trainer.simcut={self.simcut:g}: each defines the second pass. "
                "Set one of them to 0."
            )

    @property
    def validates_epochs(self) -> bool:
        """Whether each epoch ends with a validation; select=last needs it only for patience or averaged checkpoints."""
        needed = self.select != "last" or self.patience is not None or self.average == "checkpoints"
        return self.validate_every is None and needed

    @property
    def budget(self) -> Budget:
        """The limits of the training."""
        return Budget(self.steps, self.epochs, self.minutes)
