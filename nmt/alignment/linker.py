"""Links for tags: every word of a translation belongs to a word of its source."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.alignment.units import Units, source_units, target_units
from nmt.alignment.word_weights import SHIFTS, Head, Weights, best_links, word_weights
from nmt.links import Link
from nmt.text.lexicon import Lexicon
from nmt.text.tokenizer import Tokenizer
from nmt.translation.named_heads import AUTO
from nmt.translation.types import Translation

#: What the first translation of a piece in the lexicon counts, as attention; and the least that a word receives in all.
_KNOWN, _LEAST = 0.4, 0.2
#: What a link costs for each word between it and the word after that of the link before, at most so many; and the share
#: from which a source word without links is linked to the target word that gives it the most.
_JUMP, _JUMPS, _ENOUGH = 0.1, 5, 0.3


class Linker(NamedTuple):
    """Links target words by attention and by the run's lexicon.

    Attributes:
        head, shift: of the attention; see `nmt.alignment.word_weights`.
        lexicon, tokenizer: of the run; None without a lexicon.
    """

    head: Head = AUTO
    shift: int = 0
    lexicon: Lexicon | None = None
    tokenizer: Tokenizer | None = None

    def links(self, translation: Translation) -> list[Link]:
        """Link each target word to the source word that gives it the largest share of what it gives in all.

        The word with the most weight is often one that attracts weight in every step, such as a noun before its article
        or the last word. The share takes that into account. Of shares that differ little, those count whose words are
        beside each other in both texts. Source words that remain are linked to their best target words.

        Returns:
            (source, target) positions from 0, in the order of the target.
        """
        units = source_units(translation), target_units(translation)
        weights = word_weights(translation, self.head, self.shift, units)
        if weights.size and self.lexicon is not None:
            weights = weights + _KNOWN * self.known(translation, units)
        shares = weights / np.maximum(weights.sum(0, keepdims=True), _LEAST)
        links = in_order(shares)
        rest = set(range(shares.shape[1])) - {source for source, _ in links}
        links += [(each, int(shares[:, each].argmax())) for each in rest if shares[:, each].max(initial=0) > _ENOUGH]
        return sorted(links, key=lambda link: (link[1], link[0]))

    def known(self, translation: Translation, units: tuple[Units, Units]) -> Weights:
        """How likely target words translate source words by the lexicon, [Tw, Sw]: the mean of 1 / rank over pieces."""
        assert self.lexicon is not None
        assert self.tokenizer is not None
        source, target = units
        table = self.lexicon.translations[self.tokenizer.source.ids(translation.source_pieces)]
        parts = np.float32(1) / np.arange(1, table.shape[1] + 1, dtype=np.float32)
        pieces = np.array([(table == each) @ parts for each in self.tokenizer.target.ids(translation.pieces)])
        shares = [of.members / np.maximum(of.members.sum(0, keepdims=True), 1) for of in (target, source)]
        known: Weights = shares[0].T @ pieces @ shares[1]
        return known

    def agreement(self, translations: Sequence[Translation]) -> float:
        """The mean of what the lexicon says of the words that attention links."""
        values = [np.zeros(0)]
        for each in translations:
            units = source_units(each), target_units(each)
            weights = word_weights(each, self.head, self.shift, units)
            if weights.size:
                rows = best_links(weights)
                known = self.known(each, units)
                values.append(np.array([known[target, source] for source, target in rows]))
        flat = np.concatenate(values)
        return float(flat.mean()) if flat.size else 0.0

    def best_by_lexicon(self, translations: Sequence[Translation], heads: Sequence[str]) -> "Linker":
        """The head and the shift that agree best with the lexicon; of equals, the first head and shift 0."""
        candidates = [self._replace(head=head, shift=shift) for head in heads for shift in SHIFTS]
        return max(candidates, key=lambda each: each.agreement(translations))


def in_order(shares: Weights) -> list[Link]:
    """The best path through shares [Tw, Sw], a source word for each target word that has any; jumps cost."""
    if not shares.size:
        return []
    # Jumps of _JUMPS words or more cost the same, so that of these only the one from the best word counts.
    places, offsets = np.arange(shares.shape[1]), np.arange(1 - _JUMPS, _JUMPS)[:, None]
    near = places - 1 + offsets
    costs = np.where((near >= 0) & (near < len(places)), _JUMP * np.abs(offsets), np.inf)
    near = near.clip(0, len(places) - 1)
    values, before = np.log(np.maximum(shares, 1e-3)), list[Any]()
    for at in range(1, len(values)):
        last = values[at - 1]
        totals = last[near] - costs
        jumps, far = totals.argmax(0), last.max() - _JUMP * _JUMPS
        best = totals[jumps, places]
        before.append(np.where(far > best, last.argmax(), near[jumps, places]))
        values[at] += np.maximum(best, far)
    links, source = list[Link](), int(values[-1].argmax())
    for target in reversed(range(len(shares))):
        if shares[target].any():
            links.append((source, target))
        source = int(before[target - 1][source]) if target else 0
    return links
