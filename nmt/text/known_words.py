"""The words of a training text, to warn of words that the model has never seen.

A word is a run of letters and their marks, regardless of case; in scripts without spaces, each character is a word.
Numbers are not words. Only checksums of N words are stored: an unseen word counts as seen with probability N / 2^32.
"""

import functools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from nmt.system.errors import damaged
from nmt.system.integrity import check, replacing
from nmt.text.canonical import canonical
from nmt.text.spans import Span

#: Nothing is stored for a text with more words: the file would exceed 4 MB, and few unseen words would lack pieces.
MOST = 1_000_000
#: Characters of scripts without spaces between words, from Thai to Myanmar, Khmer, kana and Han.
_UNSPACED = r"\u0e00-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d"
#: Marks on letters, and invisible joiners of letters; `\w` matches neither.
_MARKS = (
    r"\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u2060"
)
_OTHER = rf"\d_{_UNSPACED}\U00020000-\U0003ffff"
_WORD = re.compile(rf"(?![\d_])[{_OTHER}](?<=\w)|(?![{_OTHER}])\w(?:(?![{_OTHER}])[\w{_MARKS}])*")


class KnownWords:
    """The words of a training text."""

    def __init__(self, sums: npt.NDArray[np.uint32]) -> None:
        """Take the checksums of the words."""
        self._sums = np.unique(sums)
        self._knows = functools.lru_cache(1 << 16)(self._find)  # most words of a text are repeated

    @classmethod
    def of(cls, lines: Iterable[str]) -> "KnownWords | None":
        """The words of a text; None if it has more than `MOST` words."""
        words = set[str]()
        for line in lines:
            words.update(map(_form, _WORD.findall(line)))
            if len(words) > MOST:
                return None
        return cls(np.array([*map(_sum, words)], np.uint32))

    def __or__(self, other: "KnownWords") -> "KnownWords":
        """The words of both texts."""
        return KnownWords(np.concatenate([self._sums, other._sums]))

    def __len__(self) -> int:
        return len(self._sums)

    def unseen(self, text: str) -> list[Span]:
        """The spans of words that are not in the training text."""
        words = _WORD.finditer(text)  # very long matches are not cached
        return [each.span() for each in words if not (self._knows if len(each[0]) <= 64 else self._find)(each[0])]

    def _find(self, word: str) -> bool:
        checksum = _sum(_form(word))
        at = int(np.searchsorted(self._sums, np.uint32(checksum)))
        return at < len(self._sums) and int(self._sums[at]) == checksum

    def save(self, path: Path) -> None:
        """Write the checksums into a file (UserError if that fails)."""
        with replacing(path.parent, path.name) as temporary:
            temporary.write_bytes(safetensors.numpy.save({"sums": self._sums}))


def load_known_words(path: Path) -> KnownWords | None:
    """Read the words from a file; None if it does not exist (UserError if it is damaged)."""
    if not path.exists():
        return None
    check(path)
    try:
        with safetensors.safe_open(path, "np") as file:
            sums = file.get_tensor("sums")
    except (OSError, safetensors.SafetensorError, ValueError, TypeError) as error:
        raise damaged(path) from error
    if sums.dtype != np.uint32 or sums.ndim != 1 or len(sums) > 2 * MOST:
        raise damaged(path, "it has other numbers")
    return KnownWords(sums)


def _form(word: str) -> str:
    return canonical(word).casefold()


def _sum(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


class UnseenCount:
    """Counts the words of a text that are not in the training text, and the lines with such words."""

    def __init__(self, known: KnownWords | None) -> None:
        self._known, self._lines, self._words = known, 0, dict[str, None]()

    def add(self, lines: Sequence[str]) -> None:
        """Count the unseen words of further lines."""
        if self._known is not None:
            for line in lines:
                words = [line[begin:end] for begin, end in self._known.unseen(line)]
                self._lines += bool(words)
                self._words.update(dict.fromkeys(words))

    def note(self) -> Iterator[str]:
        """Yield a message about the words counted since the last note, if there are any."""
        if self._words:
            yield unseen_note([*self._words], self._lines)
            self._lines, self._words = 0, {}


def unseen_note(words: Sequence[str], lines: int) -> str:
    """A message with the number of unseen words, and the first of them."""
    first = ", ".join(words[:5]) + (", ..." if len(words) > 5 else "")
    are, parts = f"{len(words):,} different words are", "them from their parts"
    if len(words) == 1:
        are, parts = "1 word is", "it from its parts"
    where = "" if lines == 1 else f", in {lines:,} lines"
    return f"{are} not in the training text{where}: {first}. The model guesses {parts}."
