"""The settings of a training, as `configs/trainer/default.yaml` has them."""

from dataclasses import dataclass
from typing import Literal

from nmt.errors import UserError
from nmt.limits import Amount, Fraction, NotNegative, Positive, Probability, Weight
from nmt.training.budget import Budget


@dataclass(frozen=True, kw_only=True)
class TrainerSettings:
    """The settings of the training loop. `nmt.limits.checked` checks each by its type hint.

    Attributes:
        steps: budget in updates; None for no limit.
        epochs: budget in passes over the training text.
        minutes: budget in time, over all sessions.
        tokens_per_batch: padded tokens per side.
        sentences_per_batch: maximum number of pairs per batch.
        accumulate: batches per update.
        clip_norm: maximum norm of a gradient; 0 for no limit.
        label_smoothing: the share of the target probability that is spread over the vocabulary.
        scheduled_sampling: probability of a sampled input word instead of the reference.
        average: none, ema or checkpoints: the weights that are validated, saved and translated with.
        ema_decay: for average=ema, the weight of the old average at each update.
        average_checkpoints: for average=checkpoints, the number of validations whose weights are averaged.
        validate_every: updates between validations; None for once per epoch.
        validate_sentences: maximum number of sentences for BLEU.
        select: bleu or perplexity: what the best validation is selected by.
        patience: training ends after this many validations without improvement.
        save_minutes: time between checkpoints for resuming.
        log_seconds: time between progress lines, without a terminal.
        samples: translations and attention maps in TensorBoard.
        max_source_length: pieces; longer pairs are dropped.
        max_target_length: pieces; longer pairs are dropped.
        workers: threads for tokenising.
        tensorboard: whether curves and samples are written.
        guided_alignment: weight of the guided-alignment loss.

    Raises:
        UserError: there is no budget.
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
    select: Literal["bleu", "perplexity"]
    patience: Positive | None
    save_minutes: Weight
    log_seconds: Weight
    samples: NotNegative
    max_source_length: Positive
    max_target_length: Positive
    workers: Positive
    tensorboard: bool
    guided_alignment: Weight = 0.0  # runs of the first version do not have it

    def __post_init__(self) -> None:
        if not self.budget.limits:
            raise UserError("There is no budget. Give trainer.steps, trainer.epochs or trainer.minutes.")

    @property
    def budget(self) -> Budget:
        """How long to train."""
        return Budget(self.steps, self.epochs, self.minutes)
