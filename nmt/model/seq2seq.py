"""The whole model: source tokens -> memory -> target tokens, for search (`encode`, `step`) and training (`forward`)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmt.attention import Memory
from nmt.kernels.dropout import Dropout
from nmt.model.decoders import Decoded, Decoder, DecoderState, Mixture, stack_steps
from nmt.model.encoders import RecurrentEncoder, lengths_of
from nmt.model.folding import folded_step

#: The most logits of a mixture that are held at a time: 64 MiB in float32.
MIXED_LOGITS = 2**24


#: Some rows of the output layer: weight [C, F] and bias [C].
Output = tuple[Tensor, Tensor]


class Stepped(NamedTuple):
    """One step of search: log-probabilities [N, V], attention weights [N, H, S] or None, the next state."""

    log_probs: Tensor
    weights: Tensor | None
    state: DecoderState


class Seq2Seq(nn.Module):
    """An encoder, a decoder, and the embeddings and the softmax around them."""

    def __init__(
        self,
        source_embedding: nn.Embedding,
        target_embedding: nn.Embedding,
        encoder: RecurrentEncoder,
        decoder: Decoder,
        output: nn.Linear,
        dropout: float,
        fast: bool = True,
    ) -> None:
        """Parts arrive finished and tied. Without `fast` the model, its loss and its search use no fast kernel."""
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.dropout = Dropout(dropout, fast)
        self.fast = fast
        # A fresh model's features are about as small as the embeddings they come from, E^-1/2 (initialise.py).
        # Without this factor the softmax starts flat and learns several times slower (docs/results.md).
        self.scale = math.sqrt(output.in_features)

    def encode(self, source: Tensor, mask: Tensor, lengths: Tensor | None = None) -> tuple[Memory, DecoderState]:
        """source [B, S], mask [B, S] -> what the decoder remembers and where it starts.

        `lengths` [B] on the CPU saves fetching them from the mask.
        """
        return self.encode_embedded(self.source_embedding(source), mask, lengths)

    def encode_embedded(
        self, embedded: Tensor, mask: Tensor, lengths: Tensor | None = None
    ) -> tuple[Memory, DecoderState]:
        """`encode` from source embeddings [B, S, E], for whoever asks for the gradient with respect to them."""
        encoded = self.encoder(self.dropout(embedded), mask, lengths_of(mask) if lengths is None else lengths)
        start: tuple[Memory, DecoderState] = self.decoder.start(encoded)
        return start

    def logits(self, features: Tensor, output: Output | None = None) -> Tensor:
        """Features t [..., F] -> logits F^1/2 W t + b [..., V], of the rows `output` of W and b where given."""
        scaled = self.dropout(features) * self.scale
        logits: Tensor = self.output(scaled) if output is None else nn.functional.linear(scaled, *output)
        return logits

    def target_logits(self, decoded: Decoded, mask: Tensor | None = None) -> Tensor:
        """Logits [N, V] in float32 of N steps that were decoded, of a mixture its log-probabilities.

        Of a sequence they are the steps where `mask` [B, T] is true.
        """
        features, mixture = decoded.features, decoded.mixture
        if mixture is None:
            return self.logits(features if mask is None else features[mask]).float()
        return mixture_log_probs(self, mixture if mask is None else Mixture(*(part[mask] for part in mixture)))

    def log_probs(self, features: Tensor, output: Output | None = None) -> Tensor:
        """Features [..., F] -> log-probabilities [..., V] in float32; see `logits`."""
        return torch.log_softmax(self.logits(features, output).float(), -1)

    def step(self, tokens: Tensor, state: DecoderState, memory: Memory, output: Output | None = None) -> Stepped:
        """One step for search: the previous tokens [N] -> log-probabilities [N, V] in float32.

        With `output`, rows of the output layer's weight and bias, they are of these pieces alone.
        """
        embedded = self.dropout(self.target_embedding(tokens))
        decoded, state = self.decoder.step(embedded, state, memory)
        return Stepped(self.log_probs(decoded.features, output), decoded.weights, state)

    def folded_step(self, tokens: Tensor, state: DecoderState, memory: Memory, output: Output | None = None) -> Stepped:
        """`step`, faster, with the memory that `nmt.model.folding.fold` gives, where `can_fold`; in evaluation mode."""
        if tokens.device.type == "cpu":
            words, which = tokens.unique(return_inverse=True)
        else:  # the wait for how many there are would cost more than it saves
            words, which = tokens, torch.arange(len(tokens), device=tokens.device)
        decoded, state = folded_step(self.decoder, self.target_embedding(words), which, state, memory)
        return Stepped(self.log_probs(decoded.features, output), decoded.weights, state)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        source_lengths: Tensor | None,
        target_in: Tensor,
        sampling: float = 0.0,
    ) -> Decoded:
        """Teacher forcing: features [B, T, F] for target_in [B, T] (the target shifted right).

        With `sampling` > 0 each input after the first is, with that probability, the model's own draw from its
        distribution at the step before (scheduled sampling, Bengio et al. 2015, section 2.4).
        """
        memory, state = self.encode(source, source_mask, source_lengths)
        if sampling == 0:
            decoded: Decoded = self.decoder(self.dropout(self.target_embedding(target_in)), state, memory)
            return decoded
        return self._forward_sampled(memory, state, target_in, sampling)

    def _forward_sampled(self, memory: Memory, state: DecoderState, target_in: Tensor, sampling: float) -> Decoded:
        steps: list[Decoded] = []
        tokens = target_in[:, 0]
        for position in range(target_in.shape[1]):
            if position:
                own = torch.rand(tokens.shape, device=tokens.device) < sampling
                tokens = torch.where(own, self._draw(steps[-1]), target_in[:, position])
            now, state = self.decoder.forced_step(self.dropout(self.target_embedding(tokens)), state, memory)
            steps.append(now)
        return stack_steps(steps)

    def _draw(self, decoded: Decoded) -> Tensor:
        """A token [N] from the distribution of each row of one step.

        By the Gumbel-max trick, which does not make the host wait for the device, and lets logits that are no
        numbers through: the loss will tell.
        """
        with torch.no_grad():
            logits = self.target_logits(decoded)
            return (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)


def mixture_log_probs(model: Seq2Seq, mixture: Mixture) -> Tensor:
    """log sum_j a_j p(v | j) [N, V] from a mixture's features [N, J, F], with the logits of a few rows at a time."""

    def mix(features: Tensor, log_weights: Tensor) -> Tensor:
        return torch.logsumexp(log_weights.float().unsqueeze(-1) + model.log_probs(features), 1)

    rows = max(1, MIXED_LOGITS // (mixture.features.shape[1] * model.output.out_features))
    parts = zip(*(part.split(rows) for part in mixture), strict=True)
    mixed = [checkpoint(mix, *part, use_reentrant=False) for part in parts]
    return torch.cat(mixed)
