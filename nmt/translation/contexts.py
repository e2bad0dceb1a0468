"""Previous sentences as context: their tokens for the translator, and the attention weights on them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.system.errors import UserError
from nmt.text.spans import Span
from nmt.text.tokenizer import EOS, SPECIAL_PIECES, Tokenizer
from nmt.translation.types import ContextSentence, Translation

Tokens = list[list[int]]


def encoded(tokenizer: Tokenizer, contexts: Sequence[Sequence[str]], sentences: int, most: int) -> list[Tokens]:
    """The tokens of the last `sentences` of each context, cut after `most`; a repeated sentence is encoded once."""
    if not sentences:
        return [[] for _ in contexts]
    trimmed = [context[-sentences:] for context in contexts]
    texts = list(dict.fromkeys(text for context in trimmed for text in context))
    tokens = dict(zip(texts, tokenizer.source.encode(texts), strict=True))
    return [[tokens[text][:most] for text in context] for context in trimmed]


def checked(sentences: int, trained: int) -> int:
    """The number of previous sentences to show a model; -1 means as many as in training.

    Raises:
        UserError: the number is larger than in training.
    """
    if sentences > trained:
        raise UserError(
            f"context_sentences={sentences}: this run was trained with context.sentences={trained}. "
            f"Give a number up to {trained}, or leave it out."
        )
    return trained if sentences < 0 else sentences


def context_sentences(tokenizer: Tokenizer, texts: Sequence[str], tokens: Tokens) -> list[ContextSentence]:
    """The last sentences of `texts` with their pieces, one for each item of `tokens`, which may be fewer."""
    end = SPECIAL_PIECES[EOS]
    return [
        ContextSentence(text, [*tokenizer.source.pieces(ids), end], [*tokenizer.source.spans(ids, text), None])
        for text, ids in zip(texts[len(texts) - len(tokens) :], tokens, strict=True)
    ]


def weights_of_context(
    weights: npt.NDArray[np.float32] | None, slots: int, context: Sequence[ContextSentence]
) -> npt.NDArray[np.float32] | None:
    """The weights [H, T, X] on the context, which follow the `slots` columns of the source; None without them."""
    count = sum(len(sentence.pieces) for sentence in context)
    if weights is None or not count or weights.shape[2] < slots + count:
        return None
    return weights[:, :, slots : slots + count]


def with_context(translation: Translation) -> Translation | None:
    """The translation with its context and source joined to one source text; None without weights on the context.

    Sentences are separated by a space. The result can be drawn, and its words found, like any translation.
    """
    if translation.weights is None or translation.context_weights is None:
        return None
    text, pieces, spans = "", list[str](), list[Span | None]()
    for sentence in (
        *translation.context,
        ContextSentence(translation.source, translation.source_pieces, translation.source_spans),
    ):
        text += " " if text else ""
        spans += [None if span is None else (span[0] + len(text), span[1] + len(text)) for span in sentence.spans]
        pieces += sentence.pieces
        text += sentence.text
    weights = np.concatenate((translation.context_weights, translation.weights), 2)
    return translation._replace(
        source=text, source_pieces=pieces, source_spans=spans, weights=weights, context=(), context_weights=None
    )
