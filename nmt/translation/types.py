"""The result of translating, from which scores, alignments and heatmaps are computed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.text.spans import Span

if TYPE_CHECKING:  # so that code that only reads results does not import torch
    from nmt.attention import Pin

#: Kinds of attention: self-attention of the encoder, self-attention of the decoder, attention to the source.
Attends = Literal["encoder", "decoder", "cross"]
#: Kinds of pictures: one for each kind of attention, and "context" for attention to source and previous sentences.
View = Literal["encoder", "decoder", "cross", "context"]
#: File formats of heatmaps.
PictureFormat = Literal["png", "svg", "pdf"]
#: A word with a lower confidence is doubtful: more likely wrong than right.
DOUBTFUL = 0.5


class ContextSentence(NamedTuple):
    """A previous sentence: text, pieces with the end of sentence, and their spans as in `Translation`."""

    text: str
    pieces: list[str]
    spans: list[Span | None]


class Doubt(NamedTuple):
    """The confidence in each word of a translation.

    Attributes:
        confidence: [W] the probability that each target word is right; for each piece in text without spaces.
        unattended: indices of source words with hardly any attention, from 0; empty without attention.
    """

    confidence: Sequence[float]
    unattended: Sequence[int] = ()

    @property
    def mean(self) -> float | None:
        """The mean confidence, which is the expected share of right words; None without words."""
        return round(sum(self.confidence) / len(self.confidence), 4) if self.confidence else None

    @property
    def weakest(self) -> int | None:
        """The index of the word that is most likely wrong, the first of equals; None without words."""
        return min(range(len(self.confidence)), key=lambda at: self.confidence[at]) if self.confidence else None

    @property
    def doubtful(self) -> list[int]:
        """The indices of words that are more likely wrong than right."""
        return [at for at, confidence in enumerate(self.confidence) if confidence < DOUBTFUL]

    def as_json(self) -> dict[str, Any]:
        """The JSON value that docs/translation-json.md describes."""
        return {
            "confidence": [*self.confidence],
            "mean": self.mean,
            "weakest": self.weakest,
            "doubtful": self.doubtful,
            "unattended": [*self.unattended],
        }


class Translation(NamedTuple):
    """One hypothesis for one sentence, with its attention weights.

    S and T are the numbers of source and target pieces with the end of sentence; H is the number of attention heads.

    Attributes:
        source: the input sentence.
        text: the translation, one line, detokenised.
        score: the objective of the search: the log-probability with length and coverage penalties.
        log_prob: natural-log probability of the target pieces.
        source_pieces: [S] subword strings; the last is the end of sentence.
        pieces: [T] subword strings.
        source_spans: [S] the characters [begin, end) of `source` for each piece, without white space at either end.
            Several pieces may share one character. A piece of white space has an empty span, the end of sentence None.
        spans: [T] the characters [begin, end) of `text` for each target piece, like `source_spans`.
        weights: [H, T, S] attention weights; None if the decoder has no attention.
        heads: [H] names of the heads.
        attends: the kind of attention. "encoder" has the source on both axes. "decoder" has the target on both: row t
            predicts piece t, and column t is the input at step t, the beginning of the sentence or piece t - 1.
        context: the previous sentences that the model saw, the nearest last.
        context_weights: [H, T, X] attention weights on the X pieces of the context; None if the decoder attends to the
            source only.
        log_probs: [T] natural-log probabilities of the target pieces; from forced decoding only.
        best_log_probs: [T] log-probabilities of the most probable pieces at the same places; from forced decoding only.
        other_log_probs: [T] log-probabilities of the most probable other pieces; only if pieces are predicted again.
        cut: whether the length limit of search ended the translation; false under forced decoding.
        pins: the source slots that the user allowed for single steps, by step.
        tagged: the translation with the tags of its source; see `nmt.alignment.tagged_lines`.
        notes: warnings on the sentence, such as "is longer than the 50 positions ..."; only for the best translation.
        doubt: the confidence in each word; None unless requested.
        remembered: whether the translation comes from a translation memory, without a search.
    """

    source: str
    text: str
    score: float
    log_prob: float
    source_pieces: list[str]
    pieces: list[str]
    source_spans: list[Span | None]
    spans: list[Span | None]
    weights: npt.NDArray[np.float32] | None
    heads: Sequence[str] = ()
    attends: Attends = "cross"
    context: Sequence[ContextSentence] = ()
    context_weights: npt.NDArray[np.float32] | None = None
    log_probs: Sequence[float] = ()
    best_log_probs: Sequence[float] = ()
    cut: bool = False
    pins: Mapping[int, "Sequence[int] | Pin"] = {}
    notes: Sequence[str] = ()
    tagged: str = ""
    other_log_probs: Sequence[float] = ()
    doubt: Doubt | None = None
    remembered: bool = False


class Views(NamedTuple):
    """A translation with the weights of each kind of attention; None for a kind that the model does not have.

    A view can be drawn, and its words found, like any translation. In `context` the previous sentences are part of the
    source; None without previous sentences.
    """

    encoder: Translation | None
    decoder: Translation | None
    cross: Translation | None
    context: Translation | None = None
