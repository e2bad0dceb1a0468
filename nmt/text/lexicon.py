"""A lexicon of pieces from a parallel text: the likeliest translations of each source piece, and the commonest pieces.

IBM Model 1 (Brown et al. 1993, section 4.2) on pieces, without the empty word: all that a shortlist for search needs.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from nmt.errors import UserError
from nmt.files import write_bytes

Ids = npt.NDArray[np.int32]
#: Places of a source piece beside a target piece that the lexicon is learnt from: some 20,000 to 30,000 captions.
PLACES = 6_000_000
TRANSLATIONS = 100  # kept a source piece
ROUNDS = 5  # of expectation and maximisation


class Lexicon(NamedTuple):
    """translations [V, K]: of each source piece, the likeliest first, -1 where there are no more.

    common [at most V]: the target pieces that the text has, the commonest first.
    """

    translations: Ids
    common: Ids

    def save(self, path: Path) -> None:
        """Writes both into one file (UserError if it cannot)."""
        write_bytes(path, safetensors.numpy.save(self._asdict()))


def load_lexicon(path: Path, source_size: int, target_size: int) -> Lexicon:
    """Reads what `Lexicon.save` wrote for vocabularies of these sizes.

    Raises:
        UserError: the file is missing, damaged, or of other vocabularies.
    """
    try:
        arrays = safetensors.numpy.load(path.read_bytes())
        lexicon = Lexicon(arrays["translations"], arrays["common"])
    except OSError as error:
        raise UserError(
            f"{path} is missing, and shortlist= needs it: the run was trained before there were shortlists, or is "
            f"incomplete. Leave shortlist out, or train anew."
        ) from error
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}). Leave shortlist out, or take a copy that is whole.") from error
    fits = (
        all(part.dtype == np.int32 for part in lexicon)
        and lexicon.translations.ndim == 2
        and lexicon.common.ndim == 1
        and len(lexicon.translations) == source_size
        and all(part.size == 0 or (part.min() >= -1 and part.max() < target_size) for part in lexicon)
    )
    if not fits:
        raise UserError(f"{path} belongs to other vocabularies. Leave shortlist out, or take the run's own file.")
    return lexicon


def learn_lexicon(
    source: Ids, source_lengths: npt.NDArray[np.int64], target: Ids, target_lengths: npt.NDArray[np.int64], size: int
) -> Lexicon:
    """The lexicon of pairs whose ids lie in `source` and `target`, one after the other; `size` source pieces exist.

    Each step of Model 1: a target piece is shared out among the pieces of its source in proportion to how likely each
    is to give it; what each has then got, over all it gave, is the next estimate.
    """
    counts = np.bincount(target)
    common = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].astype(np.int32)
    # For every target piece the pieces of its source: a group of places.
    groups = np.repeat(source_lengths, target_lengths)
    starts = np.cumsum(groups) - groups
    firsts = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
    sources = source[np.arange(groups.sum()) + np.repeat(firsts - starts, groups)]
    width = len(counts) or 1
    met, places = np.unique(sources.astype(np.int64) * width + np.repeat(target, groups), return_inverse=True)
    givers, given = met // width, met % width
    likely = np.ones(len(met))
    for _ in range(ROUNDS if len(met) else 0):
        shares = likely[places]
        shares /= np.repeat(np.add.reduceat(shares, starts), groups)
        got = np.bincount(places, shares, len(met))
        likely = got / np.bincount(givers, got)[givers]
    order = np.lexsort((given, -likely, givers))
    ranks = np.arange(len(met)) - np.searchsorted(givers, givers)  # `met` is sorted by giver, and so is `order`
    kept = order[ranks < TRANSLATIONS]
    translations = np.full((size, TRANSLATIONS), -1, dtype=np.int32)
    translations[givers[kept], ranks[ranks < TRANSLATIONS]] = given[kept]
    return Lexicon(translations, common)
