"""The contract between encoders, decoders, `Seq2Seq` and search, independent of any layer.

An encoder turns embedded source tokens into a memory. A decoder starts from the memory and predicts target words: in
search, `step` predicts one word of every hypothesis; in training, `forward` predicts a whole target. Both compute the
same numbers. Each hypothesis has a state, each sentence a memory: the memory of B sentences serves N = B * K
hypotheses, K per sentence, without being copied. States and memories are immutable values, batch axis first.

Shapes: B sentences, S source tokens, T target tokens, N hypotheses, H heads over all layers, E embedding, V pieces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from nmt.attention import PinnedSteps, Pins


class Selectable(Protocol):
    """A value made of tensors whose first axis indexes rows."""

    def select(self, rows: Tensor) -> Self:
        """The rows `rows` [N'], in that order, repeats allowed."""
        ...


class SourceBatch(Protocol):
    """The source side of a batch of `nmt.data`: padded sentences."""

    @property
    def source(self) -> Tensor: ...
    @property
    def source_mask(self) -> Tensor: ...
    @property
    def source_lengths(self) -> Tensor: ...
    @property
    def context(self) -> Tensor: ...


class Source(NamedTuple):
    """The input of a model for B sentences.

    Attributes:
        tokens: [B, S], or their embeddings [B, S, E] for gradients with respect to embeddings.
        mask: [B, S], true where a token is real.
        lengths: [B] on the CPU; None computes them from the mask, which waits for the device.
        context: [B, K, C] previous sentences, padded with PAD; on the CPU, so that lengths need no wait.
        pins: the pins of each sentence; () for none.
    """

    tokens: Tensor
    mask: Tensor
    lengths: Tensor | None = None
    context: Tensor | None = None
    pins: Sequence[Pins] = ()

    @classmethod
    def of(cls, batch: SourceBatch, pins: Sequence[Pins] = ()) -> Self:
        """The sources of a batch."""
        return cls(batch.source, batch.source_mask, batch.source_lengths, batch.context, pins)


class Encoded(NamedTuple):
    """The result of an encoder.

    values [B, S, C]: a slot for each source token, zero at padding. A fresh model's values are about as small as
        embeddings, C^-1/2, so that any decoder can follow any encoder.
    mask [B, S]: true where the token is real.
    keys [B, S, C]: compared with queries in place of the values; None to compare the values.
    last [B, L, C]: each layer's state after its last token, directions concatenated; recurrent encoders only.
    pins: the decoder steps that are restricted to given slots; None for none.
    """

    values: Tensor
    mask: Tensor
    keys: Tensor | None = None
    last: Tensor | None = None
    pins: PinnedSteps | None = None

    def mean(self) -> Tensor:
        """The mean of the values over real tokens, [B, C]."""
        weights = self.mask.unsqueeze(-1).to(self.values.dtype)
        return (self.values * weights).sum(1) / weights.sum(1).clamp(min=1)


class Encoder(nn.Module):
    """Embedded source tokens -> `Encoded`. Padding must not change the values of real tokens.

    Attributes:
        size: the size C of a slot.
        directions: the number of directions of a recurrent encoder, which returns last states; 0 for other encoders.
        learned_positions: the number of learned positions; later tokens share the last one. None for no limit.
        heads: the names of the H heads of its self-attention, over all layers; empty without self-attention.
        recalls: whether it implements `recall`.
    """

    size: int
    directions: int = 0
    learned_positions: int | None = None
    heads: Sequence[str] = ()
    recalls: bool = False

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        """Encode embedded [B, S, E] with mask [B, S] and lengths [B] (on the CPU, at least 1)."""
        raise TypeError(f"{type(self).__name__} does not define how it encodes")

    def recall(self, embedded: Tensor, mask: Tensor, past: Tensor, real: Tensor) -> Encoded:
        """`forward` with tokens before the source: past [B, X, E], real [B, X] true where they are real.

        Past tokens are right-aligned. No gradient flows into their states.
        """
        raise TypeError(f"{type(self).__name__} does not define how it recalls")


class Words(NamedTuple):
    """The previous target words of N hypotheses: embeddings [W, E] of distinct words, and each hypothesis's row [N].

    Hypotheses of a beam share few distinct words, so what depends on the word only is computed once per word.
    Without `which`, row n belongs to hypothesis n.
    """

    embedded: Tensor
    which: Tensor | None = None

    def spread(self, by_word: Tensor) -> Tensor:
        """Repeat rows of words for their hypotheses: [W, ...] -> [N, ...]."""
        return by_word if self.which is None else by_word[self.which]


class Mixture(NamedTuple):
    """A mixture of distributions over the vocabulary: features [..., J, F] and the logs of their shares [..., J]."""

    features: Tensor
    log_weights: Tensor

    def heaviest(self, count: int) -> "Mixture":
        """The mixture of the `count` distributions with the largest shares, normalised."""
        log_weights, parts = self.log_weights.topk(min(count, self.log_weights.shape[-1]), -1)
        features = self.features.take_along_dim(parts.unsqueeze(-1), -2)
        return Mixture(features, torch.log_softmax(log_weights, -1))


class Decoded(NamedTuple):
    """The result of a decoder for one step of N hypotheses, or for T steps of B targets.

    features [N, F] or [B, T, F]: the input of the softmax.
    weights [N, H, S] or [B, H, T, S]: of the attention to the source; None without attention or if not requested.
    terms: for the loss, by name, [N] or [B, T].
    mixture: the next word's distribution if it is a mixture, else None; the features are then only fed back.
    """

    features: Tensor
    weights: Tensor | None = None
    terms: Mapping[str, Tensor] = {}
    mixture: Mixture | None = None


def stack_steps(steps: Sequence[Decoded]) -> Decoded:
    """Stack the steps of a target: features [B, T, F], weights [B, H, T, S], terms [B, T]."""
    weights = [step.weights for step in steps if step.weights is not None]
    mixtures = [step.mixture for step in steps if step.mixture is not None]
    return Decoded(
        torch.stack([step.features for step in steps], 1),
        torch.stack(weights, 2) if weights else None,
        {name: torch.stack([step.terms[name] for step in steps], 1) for name in steps[0].terms},
        Mixture(*(torch.stack(parts, 1) for parts in zip(*mixtures, strict=True))) if mixtures else None,
    )


def head_names(layers: Iterable[int]) -> Sequence[str]:
    """The names "layer.head" of the heads of several layers, both from 1; `layers` has each layer's number of heads."""
    return tuple(f"{layer}.{head}" for layer, heads in enumerate(layers, 1) for head in range(1, heads + 1))


class Sizes(NamedTuple):
    """The sizes of other parts that a decoder needs: embedding size, size of a memory slot, `Encoder.directions`."""

    embedding: int
    value: int
    directions: int


class DecoderParts(NamedTuple):
    """The parts of a decoder: sizes of other parts, and functions that make parts for sizes the decoder chooses.

    `attention` makes the attention to the source. Other parts are None unless the decoder's configuration has them.
    """

    attention: Callable[..., Any]
    sizes: Sizes
    readout: Any = None
    self_attention: Any = None
    positions: Any = None


Memory = TypeVar("Memory", bound=Selectable)
State = TypeVar("State", bound=Selectable)


class Asks(NamedTuple):
    """The state that is the query at step t: its symbol, its description, and the last word that the state has read.

    `behind` is 1 if that word is y_(t-1), and 2 if it is y_(t-2).
    """

    symbol: str
    says: str
    behind: int


class Decoder(nn.Module, Generic[Memory, State]):
    """Memory and previous words -> features for the softmax.

    Subclasses take `DecoderParts`, and their settings as keyword arguments.

    Attributes:
        features: the size F of the features.
        logit_scale: multiplies features before the softmax.
        heads: the names of the H heads of its attention to the source, over all layers; empty without attention.
        self_heads: the names of the heads of its self-attention.
        max_positions: the number of source tokens, from the first, that attention can reach; None for no limit.
        learned_positions: the number of learned target positions; later words share the last one. None for no limit.
        searched_parts: the number of distributions of a mixture that a search step sums, those with the largest shares;
            None for all.
        carries_contexts: whether the context of a step influences later steps.
        drops_features: whether all components of the features have already passed dropout.
        asks: the state that queries the attention to the source; None without attention.
    """

    features: int
    asks: Asks | None = None
    logit_scale: float = 1.0
    heads: Sequence[str] = ()
    self_heads: Sequence[str] = ()
    max_positions: int | None = None
    learned_positions: int | None = None
    searched_parts: int | None = None
    carries_contexts: bool = True
    drops_features: bool = False

    @property
    def source_attentions(self) -> Sequence[nn.Module]:
        """The attention of each layer to the source, in the order of `heads`."""
        return ()

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[Memory, State]:
        """The memory and the first state, once per sentence.

        With `searching`, the memory may be prepared for many steps without gradients.
        """
        raise TypeError(f"{type(self).__name__} does not define where it starts")

    def with_room(self, state: State, steps: int) -> State:
        """The first state with buffers for `steps` steps, so that no step changes a shape."""
        return state

    def step(self, words: Words, state: State, memory: Memory, *, weights: bool = True) -> tuple[Decoded, State]:
        """One step's result and the next state; without `weights`, attention weights are None."""
        raise TypeError(f"{type(self).__name__} does not define a step")

    def forward(self, embedded: Tensor, state: State, memory: Memory, *, weights: bool = True) -> Decoded:
        """The result for a whole given target, embedded [B, T, E]; step by step unless overridden."""
        steps = []
        for word in embedded.unbind(1):
            decoded, state = self.step(Words(word), state, memory, weights=weights)
            steps.append(decoded)
        return stack_steps(steps)

    def describe(self) -> str:
        """A description for the log that follows the names of the choices: empty, or starting with a comma."""
        return ""


#: Any decoder, for callers that pass on memory and state unseen.
AnyDecoder = Decoder[Any, Any]
