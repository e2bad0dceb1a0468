"""The whole model: source tokens -> memory -> target tokens, for search (`encode`, `step`) and training (`forward`)."""

import contextlib
import functools
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmt.attention import PinnedSteps
from nmt.kernels import plain
from nmt.kernels.dropout import Dropout
from nmt.kernels.sizes import round_up
from nmt.model.context.mechanism import Before, ContextMechanism
from nmt.model.contract import AnyDecoder, Decoded, Encoded, Encoder, Mixture, Selectable, Source, Words, stack_steps
from nmt.system.errors import UserError
from nmt.system.graphs import moved

#: The largest number of a mixture's logits in memory at a time: 8 MiB in float32, which mostly stay in a CPU's cache. A
#: GPU needs more parallel work, so its limit is 8 times as large.
MIXED_LOGITS = 2**21


#: A part of the output layer for C pieces: weight [C, F], and each sentence's biases [B, C].
Output = tuple[Tensor, Tensor]


class Stepped(NamedTuple):
    """One step of search: log-probabilities [N, V], attention weights [N, H, S] or None, the next state."""

    log_probs: Tensor
    weights: Tensor | None
    state: Selectable


class Seq2Seq(nn.Module):
    """An encoder and a decoder with their embeddings and the softmax."""

    def __init__(
        self,
        source_embedding: nn.Embedding,
        target_embedding: nn.Embedding,
        encoder: Encoder,
        decoder: AnyDecoder,
        output: nn.Linear,
        dropout: float,
        output_dropout: float,
        fast: bool = True,
        context: ContextMechanism | None = None,
    ) -> None:
        """Take parts that are already built and tied; `context` None makes a model of single sentences.

        `dropout` acts on embeddings, `output_dropout` on features. Without `fast`, the model and its loss use no fast
        kernels.
        """
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.dropout, self.output_dropout = Dropout(dropout), Dropout(output_dropout)
        self.fast = fast
        self.context = context
        #: The settings and the tokenizer to which the weights belong, by key; weight files store them.
        self.identity: dict[str, str] = {}

    def kernels(self) -> AbstractContextManager[None]:
        """A context for the model's computations: `with model.kernels(): ...` uses fast kernels only if `fast`."""
        return contextlib.nullcontext() if self.fast else plain()

    def describe(self) -> str:
        """The decoder's description for the log: see `Decoder.describe`."""
        with self.kernels():
            return self.decoder.describe()

    @property
    def context_sentences(self) -> int:
        """The number of previous sentences that the model sees."""
        return 0 if self.context is None else self.context.sentences

    def encode(self, source: Source, *, searching: bool = False) -> tuple[Selectable, Selectable]:
        """The memory of the sentences and the decoder's first state; for `searching` see `Decoder.start`.

        Raises:
            UserError: there are pins, but no attention.
        """
        with self.kernels():
            memory, state = self.decoder.start(self.encoded(source), searching=searching)
        return memory, state

    def encoded(self, source: Source) -> Encoded:
        """The encoder's result for a source."""
        tokens, mask, lengths, context, pins = source
        if lengths is None:
            lengths = mask.sum(-1).to("cpu", torch.int64)  # on the CPU, as packing requires
        embedded = self.dropout(tokens if tokens.is_floating_point() else self.source_embedding(tokens))
        encoded: Encoded
        before = self.before(context)
        if self.context is None or before is None:
            encoded = self.encoder(embedded, mask, lengths)
        else:
            encoded = self.context(self.encoder, embedded, mask, lengths, before)
        if not any(pins):
            return encoded
        self.check_attends()
        return encoded._replace(pins=PinnedSteps.of(pins, encoded.mask))

    def before(self, context: Tensor | None) -> Before | None:
        """The embedded previous sentences [B, K, C] that the model sees; None for none."""
        if self.context is None or context is None or not context.numel() or not self.context.sentences:
            return None
        context, padding = context[:, -self.context.sentences :], self.source_embedding.padding_idx or 0
        lengths = context.ne(padding).sum(-1).to("cpu")
        context = moved(context, self.source_embedding.weight.device)
        return Before(self.dropout(self.source_embedding(context)), context.ne(padding), lengths)

    def logits(self, features: Tensor, output: Output | None = None) -> Tensor:
        """Features t [..., F] -> logits c W t + b [..., V], with the decoder's `logit_scale` c.

        With `output`, only its pieces have logits, in float32, for features [N, F] with equally many rows per sentence.
        """
        scaled = self.output_dropout(features) * self.decoder.logit_scale
        logits: Tensor
        if output is None:
            logits = self.output(scaled)
        else:
            weight, biases = output
            products = nn.functional.linear(scaled, weight).float()
            logits = products.unflatten(0, (len(biases), -1)).add_(biases.unsqueeze(1)).flatten(0, 1)
        return logits

    def target_logits(self, decoded: Decoded, real: Tensor | None = None, as_computed: bool = False) -> Tensor:
        """Logits [N, V] of N decoded steps in float32; for a mixture, its log-probabilities.

        `real` selects the real steps of a sequence (see `real_steps`). With `as_computed`, bfloat16 products, as with
        precision=bf16, are not converted.
        """
        features, mixture = decoded.features, decoded.mixture
        if mixture is None:
            logits = self.logits(features if real is None else real_steps(features, real))
            return logits if as_computed and logits.dtype.itemsize < 4 else logits.float()
        return mixture_log_probs(
            self, mixture if real is None else Mixture(*(real_steps(part, real) for part in mixture))
        )

    def log_probs(self, features: Tensor, output: Output | None = None) -> Tensor:
        """Features [..., F] -> log-probabilities [..., V] in float32; see `logits`."""
        return torch.log_softmax(self.logits(features, output).float(), -1)

    def words(self, tokens: Tensor) -> Words:
        """The embeddings of previous tokens [N]; in search on a CPU, each distinct token only once."""
        if self.training or tokens.device.type != "cpu":  # on a GPU, waiting for their number costs more than it saves
            return Words(self.dropout(self.target_embedding(tokens)))
        different, which = tokens.unique(return_inverse=True)
        if torch.is_autocast_enabled("cpu"):  # products of few shapes (`Compute.compiles_shapes`)
            different = nn.functional.pad(different, (0, round_up(len(different)) - len(different)))
        return Words(self.target_embedding(different), which)

    def step(
        self,
        tokens: Tensor,
        state: Selectable,
        memory: Selectable,
        output: Output | None = None,
        *,
        weights: bool = True,
    ) -> Stepped:
        """One step of search: the previous tokens [N] -> log-probabilities [N, V] in float32.

        With `output`, rows of the output layer, the vocabulary is only their pieces. A mixture's log-probabilities
        include all shares, as in training, or the decoder's `searched_parts` largest shares.
        """
        with self.kernels():
            decoded, state = self.decoder.step(self.words(tokens), state, memory, weights=weights)
        if decoded.mixture is None:
            log_probs = self.log_probs(decoded.features, output)
        else:
            count = self.decoder.searched_parts
            log_probs = self._marginal(decoded.mixture if count is None else decoded.mixture.heaviest(count), output)
        return Stepped(log_probs, decoded.weights, state)

    def _marginal(self, mixture: Mixture, output: Output | None) -> Tensor:
        """log sum_j a_j p(v | j) [N, V or C] of a mixture of N hypotheses, computing the logits of one j at a time."""
        joint = (
            log_weight.float().unsqueeze(1) + self.log_probs(features, output)
            for features, log_weight in zip(*(part.unbind(1) for part in mixture), strict=True)
        )
        mixed: Tensor = functools.reduce(torch.logaddexp, joint)
        return mixed

    def check_attends(self) -> None:
        """Raise UserError if the model has no attention to pin."""
        if not self.decoder.heads:
            raise UserError(
                "slots= restricts the attention, but this run has none (decoder=none). Leave it out, or take a run "
                "with attention."
            )

    def forward(
        self,
        source: Source,
        target_in: Tensor,
        sampling: float = 0.0,
        *,
        weights: bool = True,
    ) -> Decoded:
        """Teacher forcing: features [B, T, F] for target_in [B, T], the target shifted right.

        With `sampling` > 0, each input after the first is with that probability replaced by a draw from the model's
        distribution at the previous step (scheduled sampling, Bengio et al. 2015, section 2.4).
        """
        memory, state = self.encode(source)
        with self.kernels():
            if sampling:
                return self._forward_sampled(memory, state, target_in, sampling, weights)
            embedded = self.dropout(self.target_embedding(target_in))
            decoded: Decoded = self.decoder(embedded, state, memory, weights=weights)
        return decoded

    def _forward_sampled(
        self, memory: Selectable, state: Selectable, target_in: Tensor, sampling: float, weights: bool
    ) -> Decoded:
        steps: list[Decoded] = []
        tokens = target_in[:, 0]
        for position in range(target_in.shape[1]):
            if position:
                sampled = torch.rand(tokens.shape, device=tokens.device) < sampling
                tokens = torch.where(sampled, self._draw(steps[-1]), target_in[:, position])
            words = Words(self.dropout(self.target_embedding(tokens)))
            decoded, state = self.decoder.step(words, state, memory, weights=weights)
            steps.append(decoded)
        return stack_steps(steps)

    def _draw(self, decoded: Decoded) -> Tensor:
        """Draw a token [N] from each row's distribution of one step.

        The Gumbel-max trick does not make the host wait for the device. NaN logits raise no error here; the loss check
        reports them.
        """
        with torch.no_grad():
            logits = self.target_logits(decoded)
            return (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)


def real_steps(steps: Tensor, real: Tensor) -> Tensor:
    """The N real steps [N, ...] of steps [B, T, ...].

    `real` is a mask [B, T], true where a step is real, or the flat indices [N] of real steps. On a GPU, a mask makes
    the host wait for the count of its elements; indices do not.
    """
    if real.dtype is torch.bool:
        return steps[real]
    if len(real) == steps.shape[0] * steps.shape[1]:
        return steps.flatten(0, 1)
    return steps.flatten(0, 1).index_select(0, real)


def mixture_log_probs(model: Seq2Seq, mixture: Mixture) -> Tensor:
    """log sum_j a_j p(v | j) [N, V] from a mixture's features [N, J, F], computing the logits of a few rows at a time.

    Probabilities below the smallest normal number of float32, 1e-38, are raised to it and get no gradient.
    """

    def mix(scaled: Tensor, log_weights: Tensor) -> Tensor:
        # Summing probabilities reads and writes the logits a third as often as summing log-probabilities.
        probabilities = torch.softmax(model.output(scaled).float(), -1)
        with torch.autocast(scaled.device.type, enabled=False):
            mixed = torch.bmm(log_weights.float().exp().unsqueeze(1), probabilities).squeeze(1)
        return mixed.clamp_min(torch.finfo(torch.float32).tiny).log()

    held = MIXED_LOGITS * (1 if mixture.features.device.type == "cpu" else 8)
    rows = max(1, held // (mixture.features.shape[1] * model.output.out_features))
    # Draw dropout outside: `checkpoint` then repeats `mix` without the random state, which CUDA graphs cannot read.
    scaled = model.output_dropout(mixture.features) * model.decoder.logit_scale
    parts = zip(scaled.split(rows), mixture.log_weights.split(rows), strict=True)
    mixed = [checkpoint(mix, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    return torch.cat(mixed)
