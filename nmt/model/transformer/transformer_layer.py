"""Layers of the Transformer's encoder and decoder, their input, and the residual connections around sublayers.

Shapes: N rows (sentences or hypotheses), T words per row, D the size of a word's vector, E of an embedding.
"""

import functools
from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from nmt.attention import Attended, Attention, AttentionState, Memory
from nmt.kernels.dot_tanh import at_least_float32
from nmt.kernels.dropout import Dropout
from nmt.model.positions import Positions
from nmt.model.transformer.weighted import Branches

Norm = Literal["pre", "post"]


class Entrance(nn.Module):
    """E^1/2 times embeddings with positions, through a linear layer if E is not D. Vaswani et al. 2017, 3.4."""

    def __init__(self, positions: Callable[..., Positions], embedding_size: int, size: int) -> None:
        super().__init__()
        self.positions = positions(embedding_size)
        self.scale = embedding_size**0.5
        self.linear = nn.Linear(embedding_size, size) if embedding_size != size else None

    def forward(self, embedded: Tensor, steps: Tensor) -> Tensor:
        """Embeddings [N, T, E] at positions steps [N, T] -> [N, T, D]."""
        vectors: Tensor = self.positions(embedded, steps) * self.scale
        return at_least_float32(vectors if self.linear is None else self.linear(vectors))


class Residual(nn.Module):
    """The residual connection around a sublayer: x + Sub(LN(x)) with norm="pre", LN(x + Sub(x)) with "post".

    Vaswani et al. 2017, section 3.1; Xiong et al. 2020, figure 1.
    """

    def __init__(self, size: int, norm: Norm, dropout: float) -> None:
        """`dropout` acts on the sublayer's output."""
        super().__init__()
        self.before_sublayer = norm == "pre"
        self.norm, self.dropout = nn.LayerNorm(size), Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """The sublayer's input for x."""
        inner: Tensor = self.norm(x) if self.before_sublayer else x
        return inner

    def after(self, x: Tensor, change: Tensor) -> Tensor:
        """Add the sublayer's output `change` to x."""
        x = x + self.dropout(change)
        outer: Tensor = x if self.before_sublayer else self.norm(x)
        return outer


class FeedForward(nn.Module):
    """W_2 max(0, W_1 x + b_1) + b_2. Vaswani et al. 2017, eq. 2."""

    def __init__(self, size: int, inner_size: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(size, inner_size), nn.Linear(inner_size, size)

    def forward(self, x: Tensor) -> Tensor:
        outer: Tensor = self.outer(self.inner(x).relu_())
        return outer


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, or both in one sublayer of branches."""

    def __init__(
        self,
        self_attention: Attention,
        size: int,
        feed_forward_size: int | None,
        branches: bool,
        norm: Norm,
        dropout: float,
        last_attention: Attention | None = None,
    ) -> None:
        """`feed_forward_size` None is 4 times the size. With `branches`, `last_attention` contains the networks.

        `last_attention` None is the self-attention.

        Raises:
            SettingError: the feed-forward size cannot be divided among the branches.
        """
        super().__init__()
        self.self_attention = self_attention
        self.around_self = Residual(size, norm, dropout)
        inner_size = 4 * size if feed_forward_size is None else feed_forward_size
        self.branches = branches
        if branches:
            last = self_attention if last_attention is None else last_attention
            last.branch(functools.partial(Branches, inner_size=inner_size), size)
        else:
            self.feed_forward = FeedForward(size, inner_size)
            self.around_feed_forward = Residual(size, norm, dropout)

    def attend_to_self(
        self, x: Tensor, mask: Tensor, steps: Tensor, past: Memory | None = None
    ) -> tuple[Tensor, Memory]:
        """The first sublayer, for words x [N, T, D] at positions steps [N, T]; mask [N, T] is true for real words.

        `past` is the memory of earlier words. Returns [N, T, D] and the memory of all words so far.
        """
        inner = self.around_self.before(x)
        memory = self.self_attention.remember(inner, mask)
        if past is not None:
            memory = past.append(memory)
        attended = self.self_attention(inner, memory, steps, weights=False)
        return self.around_self.after(x, attended.context), memory

    def transform(self, x: Tensor) -> Tensor:
        """The last sublayer; with branches, return x unchanged."""
        if self.branches:
            return x
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x)))

    def forward(self, x: Tensor, mask: Tensor, steps: Tensor) -> Tensor:
        """The whole layer, for whole sentences."""
        return self.transform(self.attend_to_self(x, mask, steps)[0])


class DecoderLayer(EncoderLayer):
    """Masked self-attention, attention to the source and a feed-forward network."""

    def __init__(
        self,
        self_attention: Attention,
        attention: Attention,
        size: int,
        feed_forward_size: int | None,
        branches: bool,
        norm: Norm,
        dropout: float,
    ) -> None:
        super().__init__(self_attention, size, feed_forward_size, branches, norm, dropout, attention)
        self.attention = attention
        self.around_attention = Residual(size, norm, dropout)

    def attend_to_source(
        self, x: Tensor, memory: Memory, steps: Tensor, state: AttentionState, weights: bool
    ) -> tuple[Tensor, Attended]:
        """The second sublayer, for words x [N, T, D] at steps [N, T]; memory and state as in `Attention`."""
        attended = self.attention(self.around_attention.before(x), memory, steps, state, weights=weights)
        return self.around_attention.after(x, attended.context), attended
