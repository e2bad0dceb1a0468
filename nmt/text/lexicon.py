"""A lexicon from a parallel text: the likeliest translations of each source piece, and the most common target pieces.

IBM Model 1 (Brown et al. 1993, section 4.2) on pieces, without the empty word, for the shortlist of search.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from nmt.system.errors import UserError
from nmt.system.integrity import check, replacing

Ids = npt.NDArray[np.int32]
#: Maximum number of pairs of a source and a target piece to learn from: some 20,000 to 30,000 captions.
PLACES = 6_000_000
#: Pairs of pieces per part, to limit memory.
PART = 500_000
TRANSLATIONS = 100  # per source piece
ROUNDS = 5  # of expectation and maximisation
_TOKENIZER = "tokenizer"  # the key in the file's metadata


class Lexicon(NamedTuple):
    """Pieces that search may use.

    Attributes:
        translations: [V, K] target pieces for each source piece, the likeliest first, padded with -1.
        common: [at most V] target pieces of the text, the most common first.
    """

    translations: Ids
    common: Ids

    def save(self, path: Path, tokenizer: str = "") -> None:
        """Write the lexicon into a file, with the fingerprint of its tokenizer (UserError if that fails)."""
        with replacing(path.parent, path.name) as temporary:
            temporary.write_bytes(safetensors.numpy.save(self._asdict(), {_TOKENIZER: tokenizer}))


def merged(first: Lexicon, second: Lexicon) -> Lexicon:
    """Merge two lexicons: translations of the first before those of the second; common pieces alternate."""
    width = min(TRANSLATIONS, first.translations.shape[1] + second.translations.shape[1])
    translations = np.full((len(first.translations), width), -1, np.int32)
    for row, pieces in enumerate(zip(first.translations.tolist(), second.translations.tolist(), strict=True)):
        both = [piece for piece in dict.fromkeys(itertools.chain(*pieces)) if piece >= 0][:width]
        translations[row, : len(both)] = both
    turns = itertools.chain(*itertools.zip_longest(first.common.tolist(), second.common.tolist(), fillvalue=-1))
    return Lexicon(translations, np.array([piece for piece in dict.fromkeys(turns) if piece >= 0], np.int32))


def load_lexicon(path: Path, source_size: int, target_size: int, tokenizer: str = "") -> Lexicon:
    """Read a lexicon for vocabularies of these sizes and, unless "", for the tokenizer with this fingerprint.

    Raises:
        UserError: the file is missing, damaged, or belongs to other vocabularies.
    """
    check(path)
    try:
        with safetensors.safe_open(path, "np") as file:
            lexicon = Lexicon(file.get_tensor("translations"), file.get_tensor("common"))
            learned_with = (file.metadata() or {}).get(_TOKENIZER)
    except OSError as error:
        raise UserError(
            f"{path} is missing, but shortlist= needs it: the run is incomplete. Give shortlist=0, or restore the run "
            "from an intact copy."
        ) from error
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(
            f"{path} is damaged ({error}). Give shortlist=0, or restore the run from an intact copy."
        ) from error
    fits = (
        tokenizer in ("", learned_with)
        and all(part.dtype == np.int32 for part in lexicon)
        and lexicon.translations.ndim == 2
        and lexicon.common.ndim == 1
        and len(lexicon.translations) == source_size
        and all(part.size == 0 or (part.min() >= -1 and part.max() < target_size) for part in lexicon)
    )
    if not fits:
        raise UserError(f"{path} belongs to other vocabularies. Give shortlist=0, or use the run's own file.")
    return lexicon


def learn_lexicon(
    source: Ids, source_lengths: npt.NDArray[np.int64], target: Ids, target_lengths: npt.NDArray[np.int64], size: int
) -> Lexicon:
    """Learn a lexicon from pairs whose ids are concatenated in `source` and `target`.

    Expectation: the count of a target piece is divided among the pieces of its source in proportion to the current
    translation probabilities. Maximisation: the counts, normalised per source piece, are the next probabilities.
    `size` is the size of the source vocabulary.
    """
    counts = np.bincount(target)
    common = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].astype(np.int32)
    width = len(counts) or 1
    # The source pieces that are paired with one target piece form a group.
    groups = np.repeat(source_lengths, target_lengths)
    firsts = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
    starts = np.cumsum(groups) - groups
    parts = list(_parts(starts, groups))
    which = np.empty(groups.sum(), np.int32 if size * width < 2**31 else np.int64)  # the largest array
    for group, place in parts:
        at = np.arange(place.start, place.stop) + np.repeat(firsts[group] - starts[group], groups[group])
        which[place] = source[at].astype(which.dtype) * width + np.repeat(target[group], groups[group])
    entries = np.unique(which)
    for _, place in parts:
        which[place] = np.searchsorted(entries, which[place])
    source_pieces, target_pieces = entries // width, entries % width
    probabilities = np.ones(len(entries))
    for _ in range(ROUNDS if len(entries) else 0):
        expected = np.zeros(len(entries))
        for group, place in parts:
            shares = probabilities[which[place]]
            shares /= np.repeat(np.add.reduceat(shares, starts[group] - place.start), groups[group])
            expected += np.bincount(which[place], shares, len(entries))
        probabilities = expected / np.bincount(source_pieces, expected)[source_pieces]
    order = np.lexsort((target_pieces, -probabilities, source_pieces))
    # Both `entries` and `order` are sorted by source piece.
    ranks = np.arange(len(entries)) - np.searchsorted(source_pieces, source_pieces)
    best = order[ranks < TRANSLATIONS]
    translations = np.full((size, TRANSLATIONS), -1, dtype=np.int32)
    translations[source_pieces[best], ranks[ranks < TRANSLATIONS]] = target_pieces[best]
    return Lexicon(translations, common)


def _parts(starts: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Yield slices of groups and of their places in the flat arrays: about `PART` places each."""
    first = 0
    while first < len(groups):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + PART)))
        yield slice(first, last), slice(int(starts[first]), int(starts[last - 1] + groups[last - 1]))
        first = last
