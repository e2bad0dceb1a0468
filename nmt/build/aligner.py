"""Alignment with a run: forced decoding of existing translations gives weights over words."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmt.alignment.splitters import WordSplitters
from nmt.alignment.units import spelled
from nmt.alignment.word_weights import Weights, best_links, saliency_weights, word_weights
from nmt.build.open import Checkpoint, OpenRun, open_for_forcing
from nmt.data.document_lines import contexts_of
from nmt.links import GoldLinks, Link
from nmt.system.compute import Compute
from nmt.system.limits import NotNegative, Positive
from nmt.system.terminal import print_message
from nmt.text.canonical import shows_nothing
from nmt.translation.named_heads import MEAN, Heads, choose_head
from nmt.translation.notes import NoteCounter, excess_of_source, excess_of_target, limits_of
from nmt.translation.translator import Translator

CHUNK = 500  # sentence pairs whose matrices are in memory at a time


class Evidence(NamedTuple):
    """A source of links: attention with a shift and a selection of heads, or saliency with shift 0."""

    method: str
    shift: int
    head: str = MEAN

    def __str__(self) -> str:
        return f"attention, shift {self.shift}" if self.method == "attention" else self.method


SALIENCY = Evidence("saliency", 0)


class SentencePairs(NamedTuple):
    """Sentences with their translations and word units, and with gold links and documents if there are any.

    `documents` has the document number of each pair, in ascending order (`nmt.data.document_lines`).
    """

    name: str
    source: Sequence[str]
    target: Sequence[str]
    words: WordSplitters
    gold: list[GoldLinks] | None
    documents: Sequence[int] | None = None


@dataclass(frozen=True)
class AlignerRequest:
    """Settings of alignment with runs; `configs/align.yaml` explains them."""

    checkpoint: Checkpoint
    head: str
    compute: Compute
    batch_sentences: Positive
    max_length: Positive
    context_sentences: NotNegative | None = None


class Aligner:
    """A run that aligns sentence pairs. A backward run translates targets into sources; its links are reversed."""

    def __init__(
        self, run: OpenRun, translator: Translator, *, head: str, max_length: int, backward: bool = False
    ) -> None:
        """`head` selects heads or is "auto"; pairs with more than `max_length` pieces on a side get no links.

        Raises:
            UserError: there are no such heads.
        """
        self.run, self.translator, self.backward, self.max_length = run, translator, backward, max_length
        self.attends = translator.attends
        if self.attends:
            choose_head(translator.heads, head)
        self.head = head if self.attends else MEAN

    @classmethod
    def open(cls, run: OpenRun, request: AlignerRequest, *, backward: bool) -> "Aligner":
        """The aligner of a run.

        Raises:
            UserError: the run is incomplete or damaged, has no such heads, or was trained with less context.
        """
        translator = open_for_forcing(
            run, request.checkpoint, request.compute, request.batch_sentences, request.context_sentences
        )
        return cls(run, translator, head=request.head, max_length=request.max_length, backward=backward)

    @property
    def heads(self) -> Heads:
        """The heads of the model's attention."""
        return self.translator.heads

    def weights(self, pairs: SentencePairs, evidence: Collection[Evidence]) -> Iterator[dict[Evidence, Weights]]:
        """Yield the weights over words of each pair, for each kind of evidence.

        A model with context sees the previous sentences of the document, on the side that it reads.

        Yields:
            Weights [target words, source words] in the run's direction; for a backward run, these are [source words,
            target words] of the pair. [0, 0] for a pair that is empty on a side, or too long.
        """
        read = pairs.target if self.backward else pairs.source
        contexts = contexts_of(read, pairs.documents, self.translator.context_sentences)
        notes = NoteCounter()
        for first in range(0, len(pairs.source), CHUNK):
            yield from self._chunk(pairs, first, contexts[first : first + CHUNK], evidence, notes)
        for message in notes.messages(pairs.name, "pair"):
            print_message(message)

    def links(self, weights: Weights, threshold: float | None) -> list[Link]:
        """The links of one pair as (source word, target word) of the pair, also for a backward run."""
        links = best_links(weights, threshold)
        return [(target, source) for source, target in links] if self.backward else links

    def _chunk(
        self,
        pairs: SentencePairs,
        first: int,
        contexts: Sequence[Sequence[str]],
        evidence: Collection[Evidence],
        notes: NoteCounter,
    ) -> Iterator[dict[Evidence, Weights]]:
        sides = [side[first : first + CHUNK] for side in (pairs.source, pairs.target)]
        splitters = pairs.words[1:]
        if self.backward:
            sides, splitters = sides[::-1], splitters[::-1]
        rows = list(self._usable(sides, f"{pairs.name}, pair", first + 1, notes))
        sources, targets = ([side[row] for row in rows] for side in sides)
        ways = {"attention": self.translator.force, "saliency": self.translator.saliency}
        before = [contexts[row] for row in rows]
        forced = [(name, ways[name](sources, targets, before)) for name in {kind.method for kind in evidence}]
        number_of = {row: number for number, row in enumerate(rows)}
        for row, texts in enumerate(zip(*sides, strict=True)):
            weights = {kind: np.zeros((0, 0), dtype=np.float32) for kind in evidence}
            if row in number_of:
                labels = [split(text) for split, text in zip(splitters, texts, strict=True)]
                for method, translations in forced:
                    translation = translations[number_of[row]]
                    units = (
                        spelled(translation.source, translation.source_spans, labels[0]),
                        spelled(translation.text, translation.spans, labels[1]),
                    )
                    weights |= {
                        kind: saliency_weights(translation, units)
                        if method == "saliency"
                        else word_weights(translation, kind.head, kind.shift, units)
                        for kind in evidence
                        if kind.method == method
                    }
            yield weights

    def _usable(self, sides: Sequence[Sequence[str]], name: str, number: int, notes: NoteCounter) -> Iterator[int]:
        """Yield the rows with text on both sides that are not too long; warn of long pairs, numbered from `number`."""
        tokenizer, limits = self.translator.tokenizer, limits_of(self.translator.models)
        lengths = zip(tokenizer.source.encode(sides[0]), tokenizer.target.encode(sides[1]), strict=True)
        for row, pieces in enumerate(lengths):
            longest = max(map(len, pieces))
            if longest > self.max_length:
                print_message(
                    f"warning: {name} {number + row} has {longest:,} pieces on a side, more than "
                    f"max_length={self.max_length}; it gets no links.",
                )
            elif not any(shows_nothing(side[row]) for side in sides):
                source, target = map(len, pieces)
                notes.add(number + row, [excess_of_source(limits, source, False), excess_of_target(limits, target + 1)])
                yield row
