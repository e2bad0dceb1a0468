"""Subword sampling: random segmentations, so that words occur in many forms, for training on small corpora.

Used by `tokenizer.Vocabulary.sample` in training. SentencePiece samples too, but its generator belongs to a thread
and is seeded once (its issues 540 and 635), so that no run could be resumed. Here, equal seeds give equal samples.
"""

import bisect
import itertools
import math
import random
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence

#: Added to the lowest score for a character without a piece, as in SentencePiece.
_UNKNOWN_PENALTY = -10.0
#: Maximum number of samples of a word; the occurrences of a more frequent word share these samples.
_FORMS = 64
#: Longer words are cut: the time of BPE-dropout grows with the square of their length.
_LONGEST = 500
#: Total characters of the words whose lattices are cached; each takes some 500 bytes.
_CACHED = 500_000


class Sampler(ABC):
    """Draws segmentations of words.

    Args:
        pieces: id and score of every piece that is text.
        spelling: gives the ids of a character without a piece (its bytes, or the unknown piece).
        space: the character that represents a space.
        symbols: pieces that are never cut, even within a word.
    """

    def __init__(
        self, pieces: dict[str, tuple[int, float]], spelling: "Spelling", space: str, symbols: Sequence[str] = ()
    ) -> None:
        self._pieces = pieces
        self._symbols = frozenset(symbols)
        self._cut = re.compile(f"({'|'.join(map(re.escape, sorted(symbols, key=len, reverse=True)))})")
        self._spelling = spelling
        inner = any(space in piece[1:] for piece in pieces)
        # If pieces can span several words, whole sentences are segmented.
        self._word = re.compile(f"(?s).{{1,{_LONGEST}}}" if inner else f"{space}?[^{space}]{{1,{_LONGEST}}}|{space}")

    @abstractmethod
    def draw(self, word: str, alpha: float, generator: random.Random) -> list[int]:
        """One segmentation of a word, as ids."""

    def sample(self, sentences: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """A segmentation of each sentence (spaces written as `space`), the same for the same arguments."""
        generator = random.Random(seed)
        split = [list(self._words(sentence)) for sentence in sentences]
        counts = Counter(itertools.chain.from_iterable(split))
        forms = {
            word: [
                [self._pieces[word][0]] if word in self._symbols else self.draw(word, alpha, generator)
                for _ in range(min(count, _FORMS))
            ]
            for word, count in counts.items()
        }
        return [
            list(
                itertools.chain.from_iterable(
                    # A rare word uses each sample once; a frequent word chooses among its samples at random.
                    forms[word].pop() if counts[word] <= _FORMS else generator.choice(forms[word])
                    for word in words
                )
            )
            for words in split
        ]

    def _words(self, sentence: str) -> Iterator[str]:
        """Yield the words and symbols of a sentence."""
        for part in self._cut.split(sentence) if self._symbols else [sentence]:
            yield from [part] if part in self._symbols else self._word.findall(part)


class Spelling:
    """The ids of a character without a piece: its bytes if the vocabulary has all bytes, otherwise the unknown id."""

    def __init__(self, byte_ids: dict[int, int], unknown: int) -> None:
        self._bytes = byte_ids if len(byte_ids) == 256 else {}
        self._unknown = unknown

    def __call__(self, character: str) -> list[int]:
        return [self._bytes[byte] for byte in character.encode()] if self._bytes else [self._unknown]


class UnigramSampler(Sampler):
    """Samples a segmentation x of a word in proportion to p(x)^alpha, p the product of its pieces' probabilities.

    See Kudo 2018, eq. 9. Words are independent, so that they can be sampled separately.
    """

    def __init__(
        self, pieces: dict[str, tuple[int, float]], spelling: Spelling, space: str, symbols: Sequence[str] = ()
    ) -> None:
        super().__init__(pieces, spelling, space, symbols)
        self._longest = max(map(len, pieces), default=1)
        self._unknown_score = min((score for _, score in pieces.values()), default=0.0) + _UNKNOWN_PENALTY
        self._lattices: dict[tuple[str, float], list[_Node]] = {}
        self._room = _CACHED

    def draw(self, word: str, alpha: float, generator: random.Random) -> list[int]:
        """Sample pieces from the end of the word back, each by the total probability of all paths that lead to it."""
        lattice = self._lattices.get((word, alpha))
        if lattice is None:
            lattice = self._lattice(word, alpha)
            if self._room >= len(word):
                self._room -= len(word)
                self._lattices[word, alpha] = lattice
        ids: list[int] = []
        end = len(word)
        while end > 0:
            node = lattice[end]
            choice = bisect.bisect(node.masses, generator.random() * node.masses[-1], hi=len(node.masses) - 1)
            ids.extend(reversed(node.ids[choice]))
            end = node.starts[choice]
        ids.reverse()
        return ids

    def _lattice(self, word: str, alpha: float) -> "list[_Node]":
        # forward[j]: log of the sum of p^alpha over all segmentations of the first j characters
        forward = [0.0]
        nodes = [_Node([], [], [])]
        for end in range(1, len(word) + 1):
            starts, ids, logs = [], [], []
            for start in range(max(0, end - self._longest), end):
                piece = self._pieces.get(word[start:end])
                if piece is not None:
                    starts.append(start)
                    ids.append([piece[0]])
                    logs.append(forward[start] + alpha * piece[1])
            if not starts or starts[-1] < end - 1:
                starts.append(end - 1)
                ids.append(self._spelling(word[end - 1]))
                logs.append(forward[end - 1] + alpha * self._unknown_score)
            highest = max(logs)
            masses = list(itertools.accumulate(math.exp(value - highest) for value in logs))
            forward.append(highest + math.log(masses[-1]))
            nodes.append(_Node(starts, ids, masses))
        return nodes


class _Node:
    """The pieces that end at one position of a word: their starts, their ids, and their cumulative probability mass."""

    __slots__ = ("ids", "masses", "starts")

    def __init__(self, starts: list[int], ids: list[list[int]], masses: list[float]) -> None:
        self.starts, self.ids, self.masses = starts, ids, masses


class MergeSampler(Sampler):
    """BPE-dropout (Provilkov et al. 2020, algorithm 1).

    At every step, each possible merge is dropped with probability `alpha`, and the best remaining merge is applied,
    until none remains.
    """

    def draw(self, word: str, alpha: float, generator: random.Random) -> list[int]:
        """The ids of the pieces after all merges."""
        symbols = list(word)
        while len(symbols) > 1:
            best, position = -math.inf, -1
            for index in range(len(symbols) - 1):
                piece = self._pieces.get(symbols[index] + symbols[index + 1])
                if piece is not None and piece[1] > best and (alpha <= 0 or generator.random() >= alpha):
                    best, position = piece[1], index
            if position < 0:
                break
            symbols[position : position + 2] = [symbols[position] + symbols[position + 1]]
        ids: list[int] = []
        for symbol in symbols:
            piece = self._pieces.get(symbol)
            ids.extend([piece[0]] if piece is not None else self._spelling(symbol))
        return ids
