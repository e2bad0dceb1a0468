"""The settings of a training, as `configs/trainer/default.yaml` has them."""

from dataclasses import dataclass

from nmt.errors import UserError
from nmt.training.averaging import Averaging
from nmt.training.budget import Budget

_AT_LEAST_ONE = (
    *("tokens_per_batch", "sentences_per_batch", "accumulate", "max_source_length", "max_target_length"),
    *("average_checkpoints", "validate_every", "validate_sentences", "patience", "workers"),
)
_NOT_NEGATIVE = ("clip_norm", "save_minutes", "log_seconds", "samples", "guided_alignment")


@dataclass(frozen=True, kw_only=True)
class TrainerSettings:
    """What the training loop does, checked.

    Attributes:
        steps: budget in updates; None for no limit.
        epochs: budget in passes over the training text.
        minutes: budget in time, over all sessions.
        tokens_per_batch: padded tokens per side.
        sentences_per_batch: the most pairs of a batch.
        accumulate: batches whose gradients make one update.
        clip_norm: the largest norm of a gradient; 0 for no limit.
        label_smoothing: the share of the target probability that is spread over the vocabulary.
        scheduled_sampling: probability of feeding the model's own draw instead of the reference.
        average: none, ema or checkpoints: the weights that are validated, saved and translated with.
        ema_decay: for average=ema, how much of the average an update leaves.
        average_checkpoints: for average=checkpoints, the number of validations whose weights are averaged.
        validate_every: updates between validations; None for once an epoch.
        validate_sentences: the most sentences that BLEU is computed on.
        select: bleu or perplexity: which validation is the best.
        patience: validations without a better one before training ends.
        save_minutes: time between saves for resuming.
        log_seconds: time between progress lines where there is no terminal.
        samples: translations and attention maps in TensorBoard.
        max_source_length: pieces; longer pairs are dropped.
        max_target_length: pieces; longer pairs are dropped.
        workers: threads for tokenising.
        tensorboard: whether curves and samples are written.
        guided_alignment: weight of the loss that draws attention to word links.

    Raises:
        UserError: no budget is given, or a value is out of range.
    """

    steps: int | None
    epochs: float | None
    minutes: float | None
    tokens_per_batch: int
    sentences_per_batch: int | None
    accumulate: int
    clip_norm: float
    label_smoothing: float
    scheduled_sampling: float
    average: str
    ema_decay: float
    average_checkpoints: int
    validate_every: int | None
    validate_sentences: int
    select: str
    patience: int | None
    save_minutes: float
    log_seconds: float
    samples: int
    max_source_length: int
    max_target_length: int
    workers: int
    tensorboard: bool
    guided_alignment: float = 0.0  # runs of the first version do not have it

    def __post_init__(self) -> None:
        self.budget  # noqa: B018  checks the limits
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"trainer.{name} must be at least 1, not {value}.")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise UserError(f"trainer.{name} must not be negative, but is {getattr(self, name)}.")
        if not 0 <= self.ema_decay < 1:
            raise UserError(f"trainer.ema_decay must lie between 0 and 1, but is {self.ema_decay}.")
        for name, kinds in (("select", ("bleu", "perplexity")), ("average", Averaging.KINDS)):
            if getattr(self, name) not in kinds:
                raise UserError(f"trainer.{name}={getattr(self, name)} is not known. Give one of {', '.join(kinds)}.")
        if not 0 <= self.label_smoothing < 1 or not 0 <= self.scheduled_sampling <= 1:
            raise UserError("trainer.label_smoothing and trainer.scheduled_sampling must lie between 0 and 1.")

    @property
    def budget(self) -> Budget:
        """How long to train."""
        return Budget(self.steps, self.epochs, self.minutes)
