"""Attention over the words of each previous sentence, then over these sentences, gated into the encoder's states.

Shapes: B sentences, S source tokens, K previous sentences of C tokens, V value, H heads.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from nmt.attention import Attended, Attention, Memory
from nmt.model.context.mechanism import Before, Calls, ContextMechanism, Shares, pack
from nmt.model.contract import Encoded, Encoder
from nmt.system.errors import UserError
from nmt.system.graphs import moved
from nmt.system.limits import NotNegative


class Hierarchical(ContextMechanism):
    """h_t <- l h_t + (1 - l) d_t, where d_t is what word t reads from the previous sentences.

    Miculicich et al. 2018, "Document-level neural machine translation with hierarchical attention networks", section
    2.2, the variant for encoders; after Yang et al. 2016 on document classification:

        s_j = attend(f_w(h_t), words of sentence j)
        d_t = FFN(attend(f_s(h_t), s_1 ... s_K))
        l = sigmoid(W_h h_t + W_p d_t)

    f_w and f_s are the query projections of the two attentions. The same encoder computes the states of the words.
    The four layer normalisations are from the authors' program: of both kinds of queries, of s_j, and of the new h_t.
    Left out are the program's fifth normalisation and the residual connection, both inside the feed-forward network;
    the paper's equation has neither.
    """

    def __init__(
        self,
        encoder: Encoder,
        word_attention: Callable[..., Attention],
        sentence_attention: Callable[..., Attention],
        *,
        sentences: NotNegative = 0,
        words: Literal["attention", "over_attention"] = "attention",
        layer_norm: bool = False,
    ) -> None:
        """`word_attention` and `sentence_attention` make the attention to words and to sentences.

        With `words` "attention", each source word has its own weights for the words of a sentence; with
        "over_attention", all source words share them (`OverAttention`). `layer_norm` adds the four normalisations.
        """
        super().__init__(sentences)
        size = encoder.size
        self.over = OverAttention() if words == "over_attention" else None
        self.word_attention = word_attention(size, size, context_size=size)
        self.sentence_attention = sentence_attention(size, size, context_size=size)
        if self.over is not None and self.word_attention.adds_values:
            rule = "must be false with context.words=over_attention, whose weights belong to no position."
            raise UserError(f"context.word_attention.window.values=true: {rule}")
        self.inner, self.outer = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.gate_state, self.gate_context = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.norms = nn.ModuleList(nn.LayerNorm(size) if layer_norm else nn.Identity() for _ in range(4))
        # From the standard deviation of an encoder's states to 1, as in normalised vectors.
        self.scale = size**0.5 if layer_norm else 1.0

    def forward(self, encoder: Encoder, embedded: Tensor, mask: Tensor, lengths: Tensor, before: Before) -> Encoded:
        encoded: Encoded = encoder(embedded, mask, lengths)
        states = encoded.values * self.scale
        words, real = _encode(encoder, before)
        context = self._read(states, mask, words * self.scale, real)
        context = self.outer(torch.relu(self.inner(context)))
        gate = torch.sigmoid(self.gate_state(states) + self.gate_context(context))
        seen = before.mask.flatten(1).any(1)[:, None, None]
        gated = self.norms[3](gate * states + (1 - gate) * context) / self.scale
        values = torch.where(seen, gated, encoded.values) * mask.unsqueeze(-1)
        return encoded._replace(values=values.to(states.dtype))

    def shares(self, layers: Calls, attentions: Calls, mask: Tensor, before: Tensor) -> Shares:
        weights, _ = super().shares(layers, attentions, mask, before)  # the source is encoded first
        (of_words,), (of_sentences,) = (
            [call.weights.mean(1) for call in calls if call.weights is not None] for calls in attentions if calls
        )
        rows, count, _ = before.shape
        # [B * K, S or 1, C] and [B * S, 1, K] -> [B, S, K, C] -> [B, S, X]
        by_word = of_words.unflatten(0, (rows, count)).transpose(1, 2)
        shares = of_sentences.reshape(rows, -1, count, 1) * by_word
        lengths = before.sum((1, 2)).to("cpu")
        return weights, pack(shares.flatten(2).transpose(1, 2), before.flatten(1), lengths).embedded.transpose(1, 2)

    def _read(self, states: Tensor, mask: Tensor, words: Tensor, real: Tensor) -> Tensor:
        """What each source word reads [B, S, V], from its states [B, S, V] and previous words [B, K, C, V]."""
        count, (rows, length, _) = words.shape[1], states.shape
        memory = self.word_attention.remember(words.flatten(0, 1), real.flatten(0, 1))
        queries = self.norms[0](states).repeat_interleave(count, 0)
        steps = torch.arange(length, device=states.device)
        if self.over is None:
            contexts = self.word_attention(queries, memory, steps.expand(len(queries), -1), weights=False).context
        else:
            real_queries = mask.repeat_interleave(count, 0)
            contexts = self.over(self.word_attention, queries, real_queries, memory).context.expand(-1, length, -1)
        # [B * K, S, V] -> [B * S, K, V]: each word has its own summaries of the sentences.
        summaries = self.norms[2](contexts).unflatten(0, (rows, count)).transpose(1, 2).flatten(0, 1)
        sentences = real.any(2).repeat_interleave(length, 0)
        memory = self.sentence_attention.remember(summaries, sentences)
        asked = self.norms[1](states).flatten(0, 1).unsqueeze(1)
        attended = self.sentence_attention(asked, memory, steps.repeat(rows).unsqueeze(1), weights=False)
        read: Tensor = attended.context.squeeze(1).unflatten(0, (rows, length))
        return read


class OverAttention(nn.Module):
    """Attention-over-attention: one context for all queries of an attention.

    Cui et al. 2017, section 3. Energies M [S, T] of slots (the document D) and queries (the query Q) are normalised in
    both directions: alpha(t) over slots, beta(i) over queries. The weight of a slot is sum_t alpha(t) beta_t, where
    beta is the mean of beta(i) over slots. Each head has its own weights.
    """

    attends = True  # `observing` records it

    def forward(
        self, attention: Attention, queries: Tensor, real: Tensor, memory: Memory, *, weights: bool = False
    ) -> Attended:
        """The context [B, 1, C] and weights [B, H, 1, S] for queries [B, T, Dq], computed with `attention`'s parts.

        `real` [B, T] is true where a query is not padding. Slots that no query sees get zeros.
        """
        del weights  # computed in any case
        split = attention.split(attention.query, queries)
        view = attention.view(split, torch.arange(queries.shape[1], device=queries.device).expand(real.shape), memory)
        energies = attention.score(split, memory.keys)
        energies = energies if view.bias is None else energies + view.bias  # [B, H, T, S]
        visible = (view.visible & real[:, None, :, None]).expand(energies.shape)
        alpha = attention.normaliser(energies, visible)
        beta = attention.normaliser(energies.transpose(2, 3), visible.transpose(2, 3))  # [B, H, S, T]
        slots = visible.any(2, keepdim=True).sum(-1).clamp(min=1)  # [B, H, 1]
        shares = (beta.sum(2) / slots).unsqueeze(2) @ alpha
        context, terms, _ = attention.read(attention.dropout(shares), memory.values)
        return Attended(attention.merged(context), shares, (), terms)


def _encode(encoder: Encoder, before: Before) -> tuple[Tensor, Tensor]:
    """The states [B, K, C, V] of the words of previous sentences, zero for empty sentences, and their mask."""
    real, lengths = before.mask.flatten(0, 1), before.lengths.flatten()
    some = lengths.nonzero().squeeze(1)
    words = before.embedded.new_zeros(*real.shape, encoder.size)
    if len(some):
        rows, longest = moved(some, real.device), int(lengths.max())
        embedded, mask = (part[:, :longest].index_select(0, rows) for part in (before.embedded.flatten(0, 1), real))
        encoded = encoder(embedded, mask, lengths[some])
        filled = nn.functional.pad(encoded.values, (0, 0, 0, real.shape[1] - longest))
        words = words.to(filled.dtype).index_copy(0, rows, filled)
    return words.unflatten(0, before.mask.shape[:2]), before.mask
