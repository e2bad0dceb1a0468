"""A run as an aligner: forced decoding of existing translations gives weights over words."""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmt.alignment.weights import Head, Weights, best_links, saliency_weights, word_weights
from nmt.alignment.words import spelled
from nmt.compute import Compute
from nmt.limits import Positive
from nmt.links import GoldLinks, Link
from nmt.pipeline.linking import WordSplitters
from nmt.pipeline.opening import Checkpoint, has_weights, head_of, open_model
from nmt.runs import Run
from nmt.search import GreedySearch
from nmt.translation.translator import Translator

CHUNK = 500  # sentence pairs whose matrices are in memory at a time


class Evidence(NamedTuple):
    """A source of links: attention with a shift, or saliency, whose shift is 0."""

    method: str
    shift: int

    def __str__(self) -> str:
        return f"attention, shift {self.shift}" if self.method == "attention" else self.method


SALIENCY = Evidence("saliency", 0)


class SentencePairs(NamedTuple):
    """Sentences with their translations, their word units, and gold links if there are any."""

    name: str
    source: Sequence[str]
    target: Sequence[str]
    words: WordSplitters
    gold: list[GoldLinks] | None


@dataclass(frozen=True)
class AlignerRequest:
    """How runs align; `configs/align.yaml` explains the settings."""

    checkpoint: Checkpoint
    head: str
    compute: Compute
    batch_sentences: Positive
    max_length: Positive


class Aligner:
    """A run that aligns. The backward run translates targets into sources; its links are reversed."""

    def __init__(self, run: Run, request: AlignerRequest, *, backward: bool) -> None:
        model, tokenizer = open_model(run, request.checkpoint, request.compute)
        self.run, self.backward, self.max_length = run, backward, request.max_length
        self.translator = Translator(
            [model],
            tokenizer,
            GreedySearch(),
            compute=request.compute,
            batch_sentences=request.batch_sentences,
        )
        self.attends = has_weights(self.translator)
        self.head: Head = head_of(request.head, self.translator) if self.attends else "mean"

    def weights(self, pairs: SentencePairs, evidence: Collection[Evidence]) -> Iterator[dict[Evidence, Weights]]:
        """What the words of each pair came from, by each of the evidence.

        Yields:
            Weights over words: [target words, source words] of this direction, which are [source words, target words]
            of the pairs for the backward one. [0, 0] for a pair that is empty on a side, or too long.
        """
        for first in range(0, len(pairs.source), CHUNK):
            yield from self._chunk(pairs, first, evidence)

    def links(self, weights: Weights, threshold: float | None) -> list[Link]:
        """The links of one pair, (source, target) of the pair."""
        links = best_links(weights, threshold)
        return [(target, source) for source, target in links] if self.backward else links

    def _chunk(self, pairs: SentencePairs, first: int, evidence: Collection[Evidence]) -> list[dict[Evidence, Weights]]:
        sides = [side[first : first + CHUNK] for side in (pairs.source, pairs.target)]
        splitters = pairs.words[1:]
        if self.backward:
            sides, splitters = sides[::-1], splitters[::-1]
        weights = [{kind: np.zeros((0, 0), dtype=np.float32) for kind in evidence} for _ in sides[0]]
        rows = list(self._usable(sides, f"{pairs.name}, pair", first + 1))
        sources, targets = ([side[row] for row in rows] for side in sides)
        words = [[split(line) for line in side] for split, side in zip(splitters, (sources, targets), strict=True)]
        for method in {kind.method for kind in evidence}:
            force = self.translator.saliency if method == "saliency" else self.translator.force
            for row, forced, *labels in zip(rows, force(sources, targets), *words, strict=True):
                source = spelled(forced.source, forced.source_spans, labels[0])
                units = source, spelled(forced.text, forced.spans, labels[1])
                for kind in (kind for kind in evidence if kind.method == method):
                    weights[row][kind] = (
                        saliency_weights(forced, units)
                        if method == "saliency"
                        else word_weights(forced, self.head, kind.shift, units)
                    )
        return weights

    def _usable(self, sides: Sequence[Sequence[str]], name: str, number: int) -> Iterator[int]:
        """The pairs with text on both sides that are not too long; warns of long pairs, numbered from `number`."""
        tokenizer = self.translator.tokenizer
        lengths = zip(tokenizer.source.encode(sides[0]), tokenizer.target.encode(sides[1]), strict=True)
        for row, pieces in enumerate(lengths):
            longest = max(map(len, pieces))
            if longest > self.max_length:
                print(
                    f"warning: {name} {number + row} has {longest:,} pieces on a side, more than "
                    f"max_length={self.max_length}; it gets no links.",
                    file=sys.stderr,
                )
            elif all(side[row].strip() for side in sides):
                yield row
