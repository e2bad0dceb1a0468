"""The contract between encoders, decoders, `Seq2Seq` and search. It knows no layer.

An encoder turns embedded source tokens into a memory. A decoder starts from it and predicts target words: `step` for
search, one word of every hypothesis; `forward` for training, a whole target. Both give the same numbers. The state
belongs to a hypothesis, the memory to a sentence: at one step a memory of B sentences serves N = B * K hypotheses, K
to a sentence, without being copied. States and memories are immutable values, batch axis first.

Shapes: B sentences, S source tokens, T target tokens, N hypotheses, H heads over all layers, E embedding, V pieces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from nmt.attention import PinnedSteps, Pins


class Selectable(Protocol):
    """A value made of tensors whose first axis is that of its rows."""

    def select(self, rows: Tensor) -> Self:
        """The rows `rows` [N'], in that order, repeats allowed."""
        ...


class SourceBatch(Protocol):
    """Padded sentences, as a batch of `nmt.data` has them."""

    @property
    def source(self) -> Tensor: ...
    @property
    def source_mask(self) -> Tensor: ...
    @property
    def source_lengths(self) -> Tensor: ...
    @property
    def context(self) -> Tensor: ...


class Source(NamedTuple):
    """What a model reads of B sentences.

    Attributes:
        tokens: [B, S], or for gradients with respect to them their embeddings [B, S, E].
        mask: [B, S], true where a token is real.
        lengths: [B] on the CPU, which saves fetching them from the mask.
        context: [B, K, C] previous sentences, PAD where there is nothing; on the CPU, which saves fetching lengths.
        pins: those of each sentence, () for none.
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
    """What an encoder leaves behind.

    values [B, S, C]: a slot for each source token, zero where padded. In a fresh model they are about as small as
        embeddings, C^-1/2, so that any decoder can follow any encoder.
    mask [B, S]: true where the token is real.
    keys [B, S, C]: what slots are found by, where that is not the values.
    last [B, L, C]: each layer's state after its last token, its directions side by side; recurrent encoders only.
    pins: the steps of the decoder that look at given slots alone; None if all are free.
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
        size: C, of a slot.
        directions: of the recurrence whose last states it leaves; 0 for an encoder without.
        learned_positions: how many positions it can tell apart; tokens beyond share the last one. None for all.
        heads: the names of the H heads of its self-attention, over all layers; empty without self-attention.
        recalls: whether it has `recall`.
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
        """`forward` with tokens before the source: past [B, X, E], real [B, X] true where they are.

        They end at the end of their rows. No gradient flows into their states.
        """
        raise TypeError(f"{type(self).__name__} does not define how it recalls")


class Words(NamedTuple):
    """The previous target words of N hypotheses: embeddings [W, E] of the different words, and each one's row [N].

    A beam's hypotheses end in few different words, and what depends on the word alone is computed once for each.
    Without `which`, row n belongs to hypothesis n.
    """

    embedded: Tensor
    which: Tensor | None = None

    def spread(self, by_word: Tensor) -> Tensor:
        """[W, ...] -> [N, ...]."""
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
    """What a decoder says of one step of N hypotheses, or of T steps of B targets.

    features [N, F] or [B, T, F]: what the softmax sees.
    weights [N, H, S] or [B, H, T, S]: of the attention to the source; None without it, or where nobody asked.
    terms: for the loss, by name, [N] or [B, T].
    mixture: the distribution of the next word, where it is one; the features are then what is fed back.
    """

    features: Tensor
    weights: Tensor | None = None
    terms: Mapping[str, Tensor] = {}
    mixture: Mixture | None = None


def stack_steps(steps: Sequence[Decoded]) -> Decoded:
    """The steps of a target as one: features [B, T, F], weights [B, H, T, S], terms [B, T]."""
    weights = [step.weights for step in steps if step.weights is not None]
    mixtures = [step.mixture for step in steps if step.mixture is not None]
    return Decoded(
        torch.stack([step.features for step in steps], 1),
        torch.stack(weights, 2) if weights else None,
        {name: torch.stack([step.terms[name] for step in steps], 1) for name in steps[0].terms},
        Mixture(*(torch.stack(parts, 1) for parts in zip(*mixtures, strict=True))) if mixtures else None,
    )


def head_names(layers: Iterable[int]) -> Sequence[str]:
    """The names "layer.head" of the heads of several layers, both from 1. `layers` says how many each has."""
    return tuple(f"{layer}.{head}" for layer, heads in enumerate(layers, 1) for head in range(1, heads + 1))


class Sizes(NamedTuple):
    """What a decoder must know of the other parts: sizes of an embedding and of a memory slot, `Encoder.directions`."""

    embedding: int
    value: int
    directions: int


class DecoderParts(NamedTuple):
    """What a decoder is put together from: sizes of others, and what makes parts for sizes that it knows.

    `attention` is that to the source. Of the rest a decoder has those that stand in its configuration.
    """

    attention: Callable[..., Any]
    sizes: Sizes
    readout: Any = None
    self_attention: Any = None
    positions: Any = None


Memory = TypeVar("Memory", bound=Selectable)
State = TypeVar("State", bound=Selectable)


class Asks(NamedTuple):
    """Which state a decoder asks the attention with at step t: its symbol, what it is, and the last word it has read.

    `behind` is 1 where that word is y_(t-1), and 2 for y_(t-2).
    """

    symbol: str
    says: str
    behind: int


class Decoder(nn.Module, Generic[Memory, State]):
    """Memory and previous words -> features for the softmax.

    A constructor takes `DecoderParts`, and its own settings by name.

    Attributes:
        features: F.
        logit_scale: multiplies features before the softmax.
        heads: the names of the H heads of its attention to the source, over all layers; empty without attention.
        self_heads: the same of its self-attention.
        max_positions: the source token from which on no head looks, whatever it holds; None without such an end.
        learned_positions: how many target positions it can tell apart; words beyond share the last one. None for all.
        searched_parts: how many distributions of a mixture a step of search sums, those with the largest shares; None
            for all.
        carries_contexts: whether what a step read changes the steps after it.
        drops_features: whether dropout has acted on all that features consist of.
        asks: which state asks the attention to the source; None without.
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
        """Memory and first state, once a sentence.

        With `searching` the memory may be prepared for many steps without gradients.
        """
        raise TypeError(f"{type(self).__name__} does not define where it starts")

    def with_room(self, state: State, steps: int) -> State:
        """The first state, with room for what a decoder keeps of so many steps: then no step changes a shape."""
        return state

    def step(self, words: Words, state: State, memory: Memory, *, weights: bool = True) -> tuple[Decoded, State]:
        """One step, and the next state; the attention's weights are left out unless `weights`."""
        raise TypeError(f"{type(self).__name__} does not define a step")

    def forward(self, embedded: Tensor, state: State, memory: Memory, *, weights: bool = True) -> Decoded:
        """A whole target where it is given: embedded [B, T, E]. Unless overridden, step by step."""
        steps = []
        for word in embedded.unbind(1):
            decoded, state = self.step(Words(word), state, memory, weights=weights)
            steps.append(decoded)
        return stack_steps(steps)

    def describe(self) -> str:
        """What the log says of it beside its choices: nothing, or words that begin with a comma."""
        return ""


#: Any decoder, for those who pass memory and state on without looking inside.
AnyDecoder = Decoder[Any, Any]
