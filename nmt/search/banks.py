"""A beam with room for hypotheses that have met some, all or none of their constraints.

Dynamic beam allocation: candidates compete with those that need as many tokens to meet the rest, and each such bank
gets its share of the beam (Post and Vilar 2018, "Fast lexically constrained decoding with dynamic beam allocation for
neural machine translation"). Attention says when a constraint may begin, and which source words are translated already
(Hasler et al. 2018, "Neural machine translation decoding with terminology constraints").
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.kernels.topk import largest
from nmt.search.constraints import Said, Trie
from nmt.search.core import Limits
from nmt.search.prefixes import PrefixStates

_IMPOSSIBLE = 1 << 30
#: A step with more than this weight on the words of constraints that are met translates these again.
_AGAIN, _MOST_COST = 0.5, 3.0


class Banks:
    """What the hypotheses of a search have said, and the best candidates for the next token.

    Attributes:
        cost: [b, K'] what each open hypothesis has lost by translating source words again, for its rank only.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, count = limits, len(limits.constraints)
        self._tries = [Trie(constraints, limits.edges) for constraints in limits.constraints]
        self._most = max(sum(len(c.alternatives) for c in each) for each in limits.constraints)
        self._said = [Said()] * count
        self.cost = torch.zeros(count, 1, dtype=torch.float64, device=limits.lengths.device)
        self._needs = torch.zeros(0)  # [b, K' k] of the candidates
        self._slots = self._masks() if any(c.slots for each in limits.constraints for c in each) else None

    def _masks(self) -> Tensor:
        """The slots of each constraint, [B, C, S]."""
        assert self._limits.slots is not None
        count, length = self._limits.slots.shape
        masks = torch.zeros(count, max(map(len, self._limits.constraints)), length, dtype=torch.bool)
        for sentence, constraints in enumerate(self._limits.constraints):
            for number, constraint in enumerate(constraints):
                masks[sentence, number, list(constraint.slots)] = True
        return masks.to(self._limits.lengths.device)

    def candidates(
        self,
        log_probs: Tensor,
        weights: Tensor | None,
        sentences: Tensor,
        position: int,
        size: int,
        prefix: PrefixStates | None,
    ) -> tuple[Tensor, Tensor]:
        """The candidates of each hypothesis, [b, K', k]: its best tokens, and those that meet constraints.

        Args:
            log_probs: [N, V] of possible tokens.
            weights: [N, H, S] of this step.
            sentences: [b] that are searched, K' rows each.
            position: of the token, from 1.
            size: of the beam.
            prefix: what rows must begin with.

        Returns:
            Log-probabilities and tokens. Impossible candidates have -inf: a hypothesis does not end before it has met
            all constraints, and they still fit into its length.
        """
        width, eos = log_probs.shape[0] // sentences.shape[0], self._limits.eos
        stands = self._attention(weights, sentences, width)
        left = (self._limits.lengths[sentences] - position).repeat_interleave(width)
        # Some of the best tokens may be impossible: the end, and what completes an alternative once more.
        values, words = largest(log_probs, min(size + 1 + self._most, log_probs.shape[1]), self._limits.fast)
        needs: list[list[int]] = []
        offers: list[list[int]] = []
        numbers = sentences.repeat_interleave(width).tolist()
        for row, (sentence, top, rest) in enumerate(zip(numbers, words.tolist(), left.tolist(), strict=True)):
            trie, said, stood = self._tries[sentence], self._said[row], None if stands is None else stands[row]
            forced = prefix is not None and prefix.forces(row)
            tops, offered = [0] * len(top), dict[int, int]()
            if trie.constraints:
                tops, offered = self._row(trie, said, top, rest, size, stood, forced)
            needs.append([*tops, *offered.values()])
            offers.append([*offered])
        most = max(map(len, offers))
        if most:
            missing = [most - len(each) for each in offers]
            offered_words = words.new_tensor([[*each, *[eos] * n] for each, n in zip(offers, missing, strict=True)])
            needs = [[*each, *[_IMPOSSIBLE] * n] for each, n in zip(needs, missing, strict=True)]
            values = torch.cat([values, log_probs.gather(1, offered_words)], 1)
            words = torch.cat([words, offered_words], 1)
        of_each = words.new_tensor(needs)
        impossible = (of_each == _IMPOSSIBLE) | ((of_each >= left.unsqueeze(1)) & (words != eos))
        self._needs = of_each.view(len(sentences), -1)
        shape = len(sentences), width, -1
        return values.masked_fill(impossible, float("-inf")).view(shape), words.view(shape)

    def _row(
        self,
        trie: Trie,
        said: Said,
        top: Sequence[int],
        left: int,
        size: int,
        stands: Sequence[bool] | None,
        forced: bool,
    ) -> tuple[list[int], dict[int, int]]:
        """What is needed after each of the `size` best tokens of a hypothesis, and after more that are offered."""
        need, steps, eos = trie.need(said), trie.steps(said), self._limits.eos
        ending = bool(need) and top[0] == eos  # only what is missing may come
        needs: dict[int, int] = {}
        for token in top:
            following = trie.after(said, token)
            again = () if forced else trie.repeated(following)
            said_again = any(stands is None or stands[number] for number in again)
            if not (said_again or (token == eos and need) or (ending and token not in steps)):
                needs[token] = trie.need(following)
                if len(needs) == size:
                    break
        anywhere = ending or need >= left or stands is None
        offered = {
            token: trie.need(trie.after(said, token))
            for token, begins in steps.items()
            if token not in needs and (anywhere or not begins or any(stands[n] for n in begins))
        }
        return [needs.get(token, _IMPOSSIBLE) for token in top], offered

    def _attention(self, weights: Tensor | None, sentences: Tensor, width: int) -> list[list[bool]] | None:
        """Whether each row stands on the words of each constraint; adds to `cost` for those that are met."""
        if weights is None or self._slots is None:
            return None
        masks = self._slots[sentences].repeat_interleave(width, 0)
        heads = list(self._limits.heads) or slice(None)
        looked = weights[:, heads, : masks.shape[2]].float().mean(1).unsqueeze(1)
        mass = (looked * masks).sum(2)
        stands = (mass >= looked.masked_fill(masks, -1.0).amax(2)) | ~masks.any(2)
        bits = 1 << torch.arange(masks.shape[1], device=masks.device)
        met = (torch.tensor([said.met for said in self._said], device=masks.device).unsqueeze(1) & bits) > 0
        covered = (mass * met).sum(1).double()
        again = torch.where(covered > _AGAIN, -torch.log1p(-covered.clamp(max=1.0)), 0.0).clamp(max=_MOST_COST)
        self.cost = self.cost + again.view_as(self.cost)
        return stands.tolist()

    def allocate(self, candidates: Tensor, size: int) -> Tensor:
        """The `size` candidates to keep of [b, K' k]: the best of each bank, then the second ones, and so on."""
        values = (candidates.view(*self.cost.shape, -1) - self.cost.unsqueeze(2)).flatten(1)
        order = values.sort(dim=1, descending=True, stable=True).indices
        needs = self._needs.masked_fill(torch.isinf(values), _IMPOSSIBLE)
        banks, by_bank = needs.gather(1, order).sort(dim=1, stable=True)
        places = torch.arange(values.shape[1], device=values.device)
        ranks = (places - torch.searchsorted(banks, banks)).masked_fill(banks == _IMPOSSIBLE, values.shape[1])
        kept = (ranks * (_IMPOSSIBLE + 1) + banks).topk(min(size, values.shape[1]), 1, largest=False).indices
        return order.gather(1, by_bank).gather(1, kept)

    def select(self, sentences: Tensor, open_rows: Tensor, parents: Tensor, rows: Tensor, tokens: Tensor) -> None:
        """Go on with the hypotheses `rows` [N'] and their next tokens [N'].

        `open_rows` [b'] of the `sentences` [b] go on, with the hypotheses `parents` [b', K].
        """
        numbers = sentences[open_rows].repeat_interleave(parents.shape[1]).tolist()
        self._said = [
            self._tries[sentence].after(self._said[row], token)
            for sentence, row, token in zip(numbers, rows.tolist(), tokens.tolist(), strict=True)
        ]
        self.cost = self.cost[open_rows].gather(1, parents)
