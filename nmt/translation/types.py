"""The result of translating, from which scores, alignments and heatmaps are computed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.text.spans import Span

if TYPE_CHECKING:  # whoever reads results needs no torch
    from nmt.attention import Pin

#: Which attention: of the encoder to itself, of the decoder to itself, of the decoder to the source.
Attends = Literal["encoder", "decoder", "cross"]
#: What a picture shows: one of these, or the attention to the source and to the sentences before it.
View = Literal["encoder", "decoder", "cross", "context"]
#: Of heatmaps.
PictureFormat = Literal["png", "svg", "pdf"]
#: A word with a lower confidence is doubtful: more likely wrong than right.
DOUBTFUL = 0.5


class ContextSentence(NamedTuple):
    """A sentence before the source: text, pieces with the end of sentence, and their spans as in `Translation`."""

    text: str
    pieces: list[str]
    spans: list[Span | None]


class Doubt(NamedTuple):
    """How likely each word of a translation is right.

    Attributes:
        confidence: [W] the probability of each target word; of each piece where text has no spaces.
        unattended: the source words, from 0, that hardly any attention fell on; none without attention.
    """

    confidence: Sequence[float]
    unattended: Sequence[int] = ()

    @property
    def mean(self) -> float | None:
        """The expected share of right words; None without words."""
        return round(sum(self.confidence) / len(self.confidence), 4) if self.confidence else None

    @property
    def weakest(self) -> int | None:
        """The number of the word that is most likely wrong, the first of equals; None without words."""
        return min(range(len(self.confidence)), key=lambda at: self.confidence[at]) if self.confidence else None

    @property
    def doubtful(self) -> list[int]:
        """The words that are more likely wrong than right."""
        return [at for at, confidence in enumerate(self.confidence) if confidence < DOUBTFUL]

    def as_json(self) -> dict[str, Any]:
        """The value that docs/translation-json.md describes."""
        return {
            "confidence": [*self.confidence],
            "mean": self.mean,
            "weakest": self.weakest,
            "doubtful": self.doubtful,
            "unattended": [*self.unattended],
        }


class Translation(NamedTuple):
    """One hypothesis for one sentence, with its attention weights.

    S is the number of source pieces with the end of sentence, H the number of attention heads. T is the number of
    target pieces with the end of sentence.

    Attributes:
        source: the input sentence.
        text: the translation, one line, detokenised.
        score: the score that search maximised: the log-probability with length and coverage penalties.
        log_prob: natural-log probability of the target pieces.
        source_pieces: [S] subword strings; the last is the end of sentence.
        pieces: [T] subword strings.
        source_spans: [S] the characters [begin, end) of `source` for each piece, without white space at either end.
            Several pieces may share one character. A piece of white space has an empty span, the end of sentence None.
        spans: [T] the same for the target, characters of `text`.
        weights: [H, T, S] attention weights; None if the decoder has no attention.
        heads: [H] their names.
        attends: whose weights they are. "encoder" has the source on both sides. "decoder" has the target on both: row t
            predicts piece t, and column t is the input at step t, the beginning of the sentence or piece t - 1.
        context: the sentences before the source that the model saw, the nearest one last.
        context_weights: [H, T, X] attention weights of the X pieces of the context; None if the decoder attends to the
            source only.
        log_probs: [T] natural-log probabilities of the target pieces, known under forced decoding only.
        best_log_probs: [T] those of the most probable pieces at the same places, known under forced decoding only.
        other_log_probs: [T] those of the most probable other pieces, known where search's pieces are predicted again.
        cut: whether it has as many pieces as search allows, so that it had to end; false under forced decoding.
        pins: the source pieces that a person let single steps look at, by step.
        tagged: the translation of a text with tags, with its tags; see `nmt.alignment.tagged_lines`.
        notes: warnings on the sentence, such as "is longer than the 50 positions ..."; the best translation has them.
        doubt: how likely each word is right; None if nobody asked.
        remembered: whether a translation memory has it, which a person wrote: nothing was searched.
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
    """A translation with the weights of each attention; None where the model has no such attention.

    A view is drawn, and its words are found, like any translation. In `context` the sentences before the source are
    part of the source; None if the model saw none.
    """

    encoder: Translation | None
    decoder: Translation | None
    cross: Translation | None
    context: Translation | None = None
