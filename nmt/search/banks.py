"""A beam with room for hypotheses that have met some, all or none of their constraints.

Dynamic beam allocation: candidates compete with those that need as many tokens to meet the rest, and each such bank
gets its share of the beam (Post and Vilar 2018, "Fast lexically constrained decoding with dynamic beam allocation for
neural machine translation"). Attention says when a constraint may begin, and which source words are translated already
(Hasler et al. 2018, "Neural machine translation decoding with terminology constraints").
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.kernels.topk import largest
from nmt.search.constraints import Outlook, Said, Trie
from nmt.search.core import Limits
from nmt.search.prefixes import PrefixStates

_IMPOSSIBLE = 1 << 30
#: What a constraint costs whose source words are translated already, and a step that translates them again.
_LATE, _AGAIN = 10.0, 3.0
#: A constraint takes the place of the tokens that are at least as probable where it begins.
_DISPLACED = math.log(0.05)


class _Candidate(NamedTuple):
    """A token of an alternative, or its column among the best ones: what is needed after it, and what it costs.

    `cost` is for what it meets, `part` as long as it has said a part.
    """

    token: int
    need: int
    cost: float = 0.0
    part: float = 0.0


class Expansion(NamedTuple):
    """What the hypotheses of a beam are expanded by.

    log_probs [N, V] of possible tokens. weights [N, H, S] of this step. sentences [b] that are searched, K' rows each.
    position: of the token, from 1. size: of the beam. prefix: what rows must begin with.
    """

    log_probs: Tensor
    weights: Tensor | None
    sentences: Tensor
    position: int
    size: int
    prefix: PrefixStates | None


class OneBank:
    """The best candidates for the next token of a beam without constraints, all in one bank.

    Attributes:
        cost: [b, K'] what each hypothesis that is kept loses, for its rank only.
    """

    cost: Tensor | float = 0.0

    def __init__(self, limits: Limits) -> None:
        self._limits, self.eos = limits, limits.eos

    def candidates(self, step: Expansion) -> tuple[Tensor, Tensor]:
        """The candidates of each hypothesis: log-probabilities and tokens, [N, k] each."""
        # The best K of a sentence are among the best K of each of its hypotheses.
        return largest(step.log_probs, min(step.size, step.log_probs.shape[1]))

    def allocate(self, candidates: Tensor, size: int) -> Tensor:
        """The `size` candidates to keep of [b, K' k]; `cost` is theirs afterwards."""
        return candidates.topk(size, 1).indices

    def select(self, sentences: Tensor, open_rows: Tensor, order: Tensor, rows: Tensor, tokens: Tensor) -> None:
        """Go on with the hypotheses `rows` [N'] and their next tokens [N'].

        `open_rows` [b'] of the `sentences` [b] go on, with the candidates that were kept in this `order` [b, K].
        """


class Banks(OneBank):
    """What the hypotheses of a search have said, and the best candidates for the next token.

    Attributes:
        cost: of translating source words again: by a step on the words of a constraint that is met, or by a constraint
            whose words earlier steps have translated.
    """

    cost: Tensor

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        count, device = len(limits.constraints), limits.lengths.device
        tries = [Trie(constraints, limits.edges) for constraints in limits.constraints]
        self._most = max(sum(len(c.alternatives) for c in each) for each in limits.constraints)
        self._outlooks = [trie.outlook(Said()) for trie in tries]
        self._slots = self._masks() if any(c.slots for each in limits.constraints for c in each) else None
        self.cost = torch.zeros(count, 1, dtype=torch.float64, device=device)
        self._coverage = torch.zeros(count, 0 if self._slots is None else self._slots.shape[1], device=device)
        # Of each row at its last step and when its path began.
        self._costs = self._begun = [list[float]()] * count
        # Of each row: the best tokens of its last step and how many are probable, the probable ones where its path
        # began, and what each constraint replaces.
        self._best: Sequence[tuple[Sequence[int], int]] = ()
        self._rivals = [frozenset[int]()] * count
        self._displaced: list[tuple[tuple[int, frozenset[int]], ...]] = [()] * count
        # Of the candidates, [b, K' k] and [2, b, K' k].
        self._needs = self._costs_of = torch.zeros(0)
        starts = [True] if limits.edges is None else limits.edges.starts
        self._starts = torch.tensor(starts, device=device)

    def _masks(self) -> Tensor:
        """The slots of each constraint, [B, C, S]."""
        assert self._limits.slots is not None
        count, length = self._limits.slots.shape
        masks = torch.zeros(count, max(map(len, self._limits.constraints)), length, dtype=torch.bool)
        for sentence, constraints in enumerate(self._limits.constraints):
            for number, constraint in enumerate(constraints):
                masks[sentence, number, list(constraint.slots)] = True
        return masks.to(self._limits.lengths.device)

    def candidates(self, step: Expansion) -> tuple[Tensor, Tensor]:
        """The best tokens of each hypothesis, and those that meet constraints.

        Impossible candidates have -inf: a hypothesis does not end before it has met all constraints, and they still fit
        into its length.
        """
        log_probs, weights, sentences, position, size, prefix = step
        width, eos = log_probs.shape[0] // sentences.shape[0], self._limits.eos
        stands = self._look(weights, sentences, width)
        left = (self._limits.lengths[sentences] - position).repeat_interleave(width)
        # Some of the best tokens may be impossible: the end, and what completes an alternative once more.
        values, words = largest(log_probs, min(size + 1 + self._most, log_probs.shape[1]))
        tops = words.tolist()
        self._best = list(zip(tops, (values >= _DISPLACED).sum(1).tolist(), strict=True))
        ordinary: list[tuple[int, int, int]] = []
        best, offers = list[tuple[int, int, _Candidate]](), list[tuple[int, int, _Candidate]]()
        for row, (outlook, top, rest) in enumerate(zip(self._outlooks, tops, left.tolist(), strict=True)):
            ending = outlook.need > 0 and top[0] == eos
            ordinary.append(
                (_IMPOSSIBLE, _IMPOSSIBLE, _IMPOSSIBLE)  # only what is missing may come
                if ending
                else (outlook.starting, outlook.inside, _IMPOSSIBLE if outlook.need else 0)
            )
            forced = prefix is not None and prefix.forces(row)
            if outlook.special or self._displaced[row]:
                of_row = None if stands is None else stands[row]
                among, more = self._row(row, outlook, top, rest, of_row, (ending, forced))
                best += [(row, column, each) for column, each in among]
                offers += [(row, column, each) for column, each in enumerate(more)]
        needs = self._ordinary(ordinary, words)
        costs = self.cost.new_zeros(2, *needs.shape)
        _put(needs, costs, best)
        if offers:
            most = 1 + max(column for _, column, _ in offers)
            tokens = words.new_full((len(words), most), eos)
            needs_of, costs_of = torch.full_like(tokens, _IMPOSSIBLE), costs.new_zeros(2, *tokens.shape)
            _put(needs_of, costs_of, offers, tokens)
            values, words = torch.cat([values, log_probs.gather(1, tokens)], 1), torch.cat([words, tokens], 1)
            needs, costs = torch.cat([needs, needs_of], 1), torch.cat([costs, costs_of], 2)
        unmet = [row for row, outlook in enumerate(self._outlooks) if outlook.need]
        if unmet:  # for those who record the search
            log_probs[unmet, eos] = float("-inf")
        self._needs, self._costs_of = needs.view(len(sentences), -1), costs.view(2, len(sentences), -1)
        impossible = (needs == _IMPOSSIBLE) | ((needs >= left.unsqueeze(1)) & (words != eos))
        return values.masked_fill(impossible, float("-inf")), words

    def _ordinary(self, needs: Sequence[tuple[int, int, int]], words: Tensor) -> Tensor:
        """What is needed after each of the words [N, k] if it is of no alternative; `needs` has all three."""
        starting, inside, end = words.new_tensor(needs).unsqueeze(2).unbind(1)
        starts = self._starts[words] if len(self._starts) > 1 else torch.ones_like(words, dtype=torch.bool)
        return torch.where(words == self._limits.eos, end, torch.where(starts, starting, inside))

    def _row(
        self,
        row: int,
        outlook: Outlook,
        top: Sequence[int],
        left: int,
        stands: Sequence[bool] | None,
        flags: tuple[bool, bool],
    ) -> tuple[list[tuple[int, _Candidate]], list[_Candidate]]:
        """The tokens of alternatives among the best of a hypothesis, by column, and those that are offered.

        `stands`: whether the step stands on the words of each constraint. `flags`: whether the hypothesis would end,
        and whether a prefix says what comes.
        """
        ending, forced = flags
        anywhere = ending or outlook.need >= left or stands is None
        among, offered = list[tuple[int, _Candidate]](), list[_Candidate]()
        columns = dict(zip(top, range(len(top)), strict=True))

        def stands_on(numbers: Sequence[int]) -> bool:
            return bool(numbers) if stands is None else any(map(stands.__getitem__, numbers))

        for token, special in outlook.special.items():
            column = columns.get(token)
            if column is None and not (special.parts and (anywhere or not special.begins or stands_on(special.begins))):
                continue
            cost = part = 0.0
            if special.parts and (costs := (self._costs if special.first else self._begun)[row]):
                if special.meets:
                    cost = min([costs[number] for number in special.meets])
                else:
                    part = min([costs[number] for number in special.parts])
            if column is None:
                offered.append(_Candidate(token, special.need, cost, part))
            else:
                again = not forced and stands_on(special.repeats)
                impossible = again or (ending and not special.parts)
                among.append((column, _Candidate(token, _IMPOSSIBLE if impossible else special.need, cost, part)))
        for number, tokens in self._displaced[row] if stands is not None and not forced else ():
            if stands is not None and stands[number]:
                rivals = tokens.intersection(top).difference(outlook.trie.tokens)
                among += [(columns[token], _Candidate(token, _IMPOSSIBLE)) for token in rivals]
        return among, offered

    def _look(self, weights: Tensor | None, sentences: Tensor, width: int) -> list[list[bool]] | None:
        """Whether each row stands on the words of each constraint; adds to `cost` for those that are met."""
        if weights is None or self._slots is None:
            self._costs = [[]] * len(self._outlooks)
            return None
        masks = self._slots[sentences].repeat_interleave(width, 0)
        heads = list(self._limits.heads) or slice(None)
        looked = weights[:, heads, : masks.shape[2]].float().mean(1).unsqueeze(1)
        mass = (looked * masks).sum(2)
        stands = (mass >= looked.masked_fill(masks, -1.0).amax(2)) | ~masks.any(2)
        met = [[*outlook.met, *[False] * (mass.shape[1] - len(outlook.met))] for outlook in self._outlooks]
        on_met = (mass * mass.new_tensor(met)).sum(1)
        self.cost = self.cost + (_AGAIN * torch.where(on_met > 0.5, on_met, 0.0)).double().view_as(self.cost)
        self._costs = (_LATE * self._coverage.clamp(max=1.0)).tolist()
        self._coverage = self._coverage + mass
        on_words: list[list[bool]] = stands.tolist()
        return on_words

    def allocate(self, candidates: Tensor, size: int) -> Tensor:
        """The `size` candidates to keep of [b, K' k]: the best of each bank, then the second ones, and so on."""
        of_meeting, of_parts = self._costs_of
        cost = self.cost.repeat_interleave(candidates.shape[1] // self.cost.shape[1], 1) + of_meeting
        values = candidates - cost - of_parts
        order = values.sort(dim=1, descending=True, stable=True).indices
        needs = self._needs.masked_fill(torch.isinf(values), _IMPOSSIBLE)
        banks, by_bank = needs.gather(1, order).sort(dim=1, stable=True)
        places = torch.arange(values.shape[1], device=values.device)
        ranks = (places - torch.searchsorted(banks, banks)).masked_fill(banks == _IMPOSSIBLE, values.shape[1])
        kept = (ranks * (_IMPOSSIBLE + 1) + banks).topk(size, 1, largest=False).indices
        flat: Tensor = order.gather(1, by_bank).gather(1, kept)
        self.cost = cost.gather(1, flat)
        return flat

    def select(self, sentences: Tensor, open_rows: Tensor, order: Tensor, rows: Tensor, tokens: Tensor) -> None:
        outlooks, begun, rivals, displaced = list[Outlook](), list[list[float]](), list[frozenset[int]](), list[Any]()
        for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
            before = self._outlooks[row]
            following, special = before.after(token), before.special.get(token)
            first = len(following.said.path) == 1
            of_path = self._probable(row) if first else self._rivals[row]
            outlooks.append(following)
            begun.append((self._costs if first else self._begun)[row])
            rivals.append(of_path)
            meets = special.meets if special is not None else ()
            replaced = tuple((each, of_path.difference(following.said.path)) for each in meets)
            displaced.append(self._displaced[row] + replaced)
        self._outlooks, self._begun, self._rivals, self._displaced = outlooks, begun, rivals, displaced
        self.cost, self._coverage = self.cost.gather(1, order)[open_rows], self._coverage[rows]

    def _probable(self, row: int) -> frozenset[int]:
        """The probable tokens of the last step of a row."""
        top, count = self._best[row]
        return frozenset(top[:count]) - {self._limits.eos}


def _put(
    needs: Tensor, costs: Tensor, candidates: Sequence[tuple[int, int, _Candidate]], tokens: Tensor | None = None
) -> None:
    """Set what candidates need [N, k], their costs [2, N, k] and their tokens, by row and column."""
    if candidates:
        rows, columns, found = zip(*candidates, strict=True)
        token, need, cost, part = zip(*found, strict=True)
        at = torch.tensor(rows, device=needs.device), torch.tensor(columns, device=needs.device)
        needs[at] = needs.new_tensor(need)
        for of_kind, values in ((costs[0], cost), (costs[1], part)):
            if any(values):
                of_kind[at] = costs.new_tensor(values)
        if tokens is not None:
            tokens[at] = tokens.new_tensor(token)
