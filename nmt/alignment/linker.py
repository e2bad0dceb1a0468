"""Word links for tag projection, by attention and the run's lexicon."""

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

#: The weight of a piece's first translation in the lexicon, on the scale of attention weights; and the lower bound of
#: the total weight by which a source word's weights are divided.
_KNOWN, _LEAST = 0.4, 0.2
#: The cost of a link for each word of distance from the source word after the previous link's; the distance from which
#: the cost is constant; and the share above which a source word without links is linked to its best target word.
_JUMP, _JUMPS, _ENOUGH = 0.1, 5, 0.3


class Linker(NamedTuple):
    """Link target words to source words by attention and by the run's lexicon.

    Attributes:
        head, shift: head and shift of the attention; see `nmt.alignment.word_weights`.
        lexicon, tokenizer: the run's lexicon and tokenizer; None without a lexicon.
    """

    head: Head = AUTO
    shift: int = 0
    lexicon: Lexicon | None = None
    tokenizer: Tokenizer | None = None

    def links(self, translation: Translation) -> list[Link]:
        """Link each target word to the source word for which it has the largest share of that word's total weight.

        The source word with the largest weight is often a word that attracts weight in every step, such as a noun or
        the last word. Dividing by the word's total corrects this. Among similar shares, links between adjacent words
        are preferred (`in_order`). Remaining source words are linked to their best target words.

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
        """The lexicon's scores of word pairs, [Tw, Sw]: 1 / rank of the translation, averaged over pieces."""
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
        """The mean lexicon score of the word pairs that attention links; 0 without links."""
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
        """The linker with the head and the shift that agree best with the lexicon; in a tie, the first."""
        candidates = [self._replace(head=head, shift=shift) for head in heads for shift in SHIFTS]
        return max(candidates, key=lambda each: each.agreement(translations))


def in_order(shares: Weights) -> list[Link]:
    """The best path through shares [Tw, Sw] with costs for jumps: a link for each target word with a share."""
    if not shares.size:
        return []
    # Jumps of _JUMPS words or more cost the same, so only the jump from the best word must be considered.
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
