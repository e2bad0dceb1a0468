"""Beam search with constraints: the beam has room for hypotheses that have met all, some or none of them.

Dynamic beam allocation: candidates that need equally many tokens to meet all constraints form a bank, and each bank
gets a share of the beam (Post and Vilar 2018, "Fast lexically constrained decoding with dynamic beam allocation for
neural machine translation"). Attention determines when a constraint may begin, and which source words are already
translated (Hasler et al. 2018, "Neural machine translation decoding with terminology constraints").
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from nmt.kernels.topk import largest
from nmt.search.constraints import AGAIN, MEETS, MET, PART, Constraint, States, Trie
from nmt.search.core import Limits
from nmt.search.prefixes import PrefixStates

_IMPOSSIBLE = 1 << 30
#: The cost of a constraint whose source words are already translated, and of a step that translates them again.
_LATE, _AGAIN = 10.0, 3.0
#: A constraint replaces the tokens that have at least this log-probability where the constraint begins.
_DISPLACED = math.log(0.05)


class Expansion(NamedTuple):
    """The data for expanding the hypotheses of a beam by one token.

    log_probs [N, V]: -inf for impossible tokens. weights [N, H, S]: of this step. sentences [b]: still searched, with
    K' rows each. position: the token's number, from 1. size: of the beam. prefix: the required prefixes of the rows.
    """

    log_probs: Tensor
    weights: Tensor | None
    sentences: Tensor
    position: int
    size: int
    prefix: PrefixStates | None


class OneBank:
    """Selects the best candidates for the next token of a beam without constraints, all in one bank.

    Attributes:
        cost: [b, K'] a penalty on each kept hypothesis that affects only its rank.
    """

    cost: Tensor | float = 0.0

    def __init__(self, limits: Limits) -> None:
        self._limits, self.eos = limits, limits.eos

    def candidates(self, step: Expansion) -> tuple[Tensor, Tensor]:
        """The candidates of each hypothesis: log-probabilities and tokens, [N, k] each."""
        # The best K of a sentence are among the best K of each of its hypotheses.
        return largest(step.log_probs, min(step.size, step.log_probs.shape[1]))

    def allocate(self, candidates: Tensor, size: int) -> Tensor:
        """The indices [b, size] of the `candidates` [b, K' k] to keep; afterwards, `cost` belongs to these."""
        return candidates.topk(size, 1).indices

    def select(self, sentences: Tensor, open_rows: Tensor, order: Tensor, rows: Tensor, tokens: Tensor) -> None:
        """Continue with the hypotheses `rows` [N'] and their next tokens [N'].

        `open_rows` [b'] are the rows of `sentences` [b] that continue; `order` [b, K] indexes the kept candidates.
        """


class Banks(OneBank):
    """Tracks the constraints of each hypothesis, and selects the best candidates for the next token.

    Attributes:
        cost: the cost of translating source words again: with a step that attends to the source words of a met
            constraint, or with a constraint whose source words earlier steps have translated.
    """

    cost: Tensor

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        count, device = len(limits.constraints), limits.lengths.device
        tries: dict[tuple[Any, ...], Trie] = {}
        for each in limits.constraints:
            tries.setdefault(_spelled(each), Trie(each, limits.edges))
        counts = [sum(len(c.alternatives) for c in each) for each in limits.constraints]
        self._most, self._widest = torch.tensor(counts, device=device), max(counts)  # [N]
        self._table = States([tries[_spelled(each)] for each in limits.constraints], device)
        self._states = self._table.starts  # [N]
        # The tokens of each sentence's alternatives, which never count as rivals of a constraint.
        tokens = [sorted(tries[_spelled(each)].tokens) for each in limits.constraints]
        longest = max(map(len, tokens))
        self._tokens = torch.tensor([each + [limits.eos] * (1 + longest - len(each)) for each in tokens], device=device)
        self._slots = self._masks() if any(c.slots for each in limits.constraints for c in each) else None
        self.cost = torch.zeros(count, 1, dtype=torch.float64, device=device)
        self._coverage = torch.zeros(count, 0 if self._slots is None else self._slots.shape[1], device=device)
        # The cost [N, C] of each constraint if a row begins it at this step, or began it where its path began.
        self._costs = self._begun = self.cost.new_zeros(count, self._table.kinds.shape[1])
        # _best: the best tokens [N, k] of each row with log-probabilities. _rivals: tokens that were probable where
        # the row's path began, -1 for none. _replaced [N, C, E, k]: the rivals of each constraint that was met.
        self._best: tuple[Tensor, Tensor] | None = None
        self._rivals: Tensor | None = None
        self._replaced = torch.zeros(0, dtype=torch.int64, device=device)
        self._times = torch.zeros_like(self._costs, dtype=torch.int64)
        # The missing tokens [b, K' k] and the costs [2, b, K' k] of the candidates.
        self._needs = self._costs_of = torch.zeros(0)
        starts, ends = ([True], [True]) if limits.edges is None else limits.edges
        self._classes = 2 * torch.tensor(starts, device=device).long() + torch.tensor(ends, device=device)

    def _masks(self) -> Tensor:
        """Masks [B, C, S] of each constraint's source slots."""
        assert self._limits.slots is not None
        count, length = self._limits.slots.shape
        masks = torch.zeros(count, max(map(len, self._limits.constraints)), length, dtype=torch.bool)
        for sentence, constraints in enumerate(self._limits.constraints):
            for number, constraint in enumerate(constraints):
                masks[sentence, number, list(constraint.slots)] = True
        return masks.to(self._limits.lengths.device)

    def candidates(self, step: Expansion) -> tuple[Tensor, Tensor]:
        """The best tokens of each hypothesis, and tokens that begin or continue constraints.

        Impossible candidates get -inf: a hypothesis must meet all constraints before it ends, and must leave room for
        them within its maximum length.
        """
        log_probs, weights, sentences, position, size, prefix = step
        eos, table, width = self._limits.eos, self._table, log_probs.shape[0] // sentences.shape[0]
        sentence_of = sentences.repeat_interleave(width)
        stands = self._look(weights, sentence_of)
        left = self._limits.lengths[sentence_of] - position
        # Some of the best tokens may be impossible: the end, and tokens that complete an alternative again.
        # How many tokens count for a sentence does not depend on the other sentences of its batch.
        values, words = largest(log_probs, min(size + 1 + self._widest, log_probs.shape[1]))
        margin = self._most[sentence_of].unsqueeze(1)
        beyond = torch.arange(words.shape[1], device=words.device) > size + margin
        values = values.masked_fill(beyond, float("-inf"))
        need = table.need[self._states]
        is_open = need > 0
        ending = is_open & (words[:, 0] == eos)  # only missing constraints may continue
        needs = table.need[table.ordinary[self._states].gather(1, self._class(words))]
        needs = torch.where(words == eos, _IMPOSSIBLE * is_open.unsqueeze(1), needs)
        needs = needs.masked_fill(ending.unsqueeze(1) | beyond, _IMPOSSIBLE)
        # Tokens of alternatives [N, M]: `is_best` marks those among the best tokens, `added` those to append.
        tokens, following = table.tokens[self._states], table.following[self._states]
        is_best = (tokens.unsqueeze(2) == words.unsqueeze(1)) & ~beyond.unsqueeze(1)
        rows, numbers, columns = is_best.nonzero(as_tuple=True)
        added = table.is_part[following].index_put((rows, numbers), table.is_part.new_zeros(()))
        begins = table.first[following] & ~(ending | (need >= left)).unsqueeze(1)
        added &= ~begins | (((table.kinds[following] & PART) > 0) & stands.unsqueeze(1)).any(2)
        free = torch.ones_like(ending)
        if prefix is not None:  # the prefix determines the next token
            free = ~torch.tensor([prefix.forces(row) for row in range(len(need))], device=need.device)
        if weights is not None and self._slots is not None:
            self._best = values, words
            self._forbid_replaced(needs, words, stands & free.unsqueeze(1), log_probs.shape[1])
        costs = self.cost.new_zeros(2, *needs.shape)
        more_rows, more_numbers = added.nonzero(as_tuple=True)
        if more_rows.numel():
            more_columns = (added.cumsum(1) - 1)[more_rows, more_numbers]
            size_of = (0, int(more_columns.max()) + 1)
            more_columns = more_columns + words.shape[1]
            words, costs = pad(words, size_of, value=eos), pad(costs, size_of)
            needs = pad(needs, size_of, value=_IMPOSSIBLE)
            words[more_rows, more_columns] = tokens[more_rows, more_numbers]
            values = torch.cat([values, log_probs.gather(1, words[:, -size_of[1] :])], 1)
            rows, numbers = torch.cat([rows, more_rows]), torch.cat([numbers, more_numbers])
            columns = torch.cat([columns, more_columns])
        self._put(needs, costs, rows, columns, following[rows, numbers], free, ending)
        log_probs[:, eos].masked_fill_(is_open, float("-inf"))  # for observers that record the search
        self._needs, self._costs_of = needs.view(len(sentences), -1), costs.view(2, len(sentences), -1)
        impossible = (needs == _IMPOSSIBLE) | ((needs >= left.unsqueeze(1)) & (words != eos))
        return values.masked_fill(impossible, float("-inf")), words

    def _class(self, tokens: Tensor) -> Tensor:
        """The class of each token: 2 if it starts a word, plus 1 if it ends a word."""
        return self._classes[tokens if len(self._classes) > 1 else torch.zeros_like(tokens)]

    def _put(
        self,
        needs: Tensor,
        costs: Tensor,
        rows: Tensor,
        columns: Tensor,
        following: Tensor,
        free: Tensor,
        ending: Tensor,
    ) -> None:
        """Set `needs` [N, k] and `costs` [2, N, k] of tokens of alternatives, which lead to the states `following`."""
        kinds = self._table.kinds[following]
        parts, meets, again = ((kinds & kind) > 0 for kind in (PART, MEETS, AGAIN))
        is_part, is_meeting = parts.any(1), meets.any(1)
        impossible = (again.any(1) & free[rows]) | (ending[rows] & ~is_part)
        needs[rows, columns] = self._table.need[following].masked_fill(impossible, _IMPOSSIBLE)
        at = torch.where(self._table.first[following].unsqueeze(1), self._costs[rows], self._begun[rows])
        least = at.masked_fill(~torch.where(is_meeting.unsqueeze(1), meets, parts), math.inf).amin(1)
        costs[(~is_meeting).long(), rows, columns] = least.masked_fill(~is_part, 0.0)

    def _forbid_replaced(self, needs: Tensor, words: Tensor, stands: Tensor, pieces: int) -> None:
        """Forbid the words [N, k] that a constraint has replaced, if the step attends to the constraint's slots."""
        rows, numbers = (stands & (self._times > 0)).nonzero(as_tuple=True)
        if rows.numel():
            replaced = self._replaced[rows, numbers].flatten(1)
            which, places = (replaced >= 0).nonzero(as_tuple=True)
            is_replaced = torch.zeros(len(words), pieces, dtype=torch.bool, device=words.device)
            is_replaced[rows[which], replaced[which, places]] = True
            banned = is_replaced.gather(1, words)
            others = ~banned & (needs != _IMPOSSIBLE)
            needs.masked_fill_(banned & others.any(1, keepdim=True), _IMPOSSIBLE)  # unless nothing else is left

    def _look(self, weights: Tensor | None, sentence_of: Tensor) -> Tensor:
        """Whether each row attends to the slots of each constraint [N, C]; adds to `cost` for met constraints."""
        if weights is None or self._slots is None:  # constraints may begin anywhere
            self._costs = self.cost.new_zeros(len(sentence_of), self._costs.shape[1])
            return self._costs == 0
        masks = self._slots[sentence_of]
        heads = list(self._limits.heads) or slice(None)
        mean_weights = weights[:, heads, : masks.shape[2]].float().mean(1).unsqueeze(1)
        mass = (mean_weights * masks).sum(2)
        stands = (mass >= mean_weights.masked_fill(masks, -1.0).amax(2)) | ~masks.any(2)
        met = (self._table.kinds[self._states] & MET) > 0
        on_met = (mass * met).sum(1)
        self.cost = self.cost + (_AGAIN * torch.where(on_met > 0.5, on_met, 0.0)).double().view_as(self.cost)
        self._costs = (_LATE * self._coverage.clamp(max=1.0)).double()
        self._coverage = self._coverage + mass
        return stands

    def allocate(self, candidates: Tensor, size: int) -> Tensor:
        """The indices of `size` candidates to keep of [b, K' k]: the best of each bank, then the second, and so on."""
        of_meeting, of_parts = self._costs_of
        cost = self.cost.repeat_interleave(candidates.shape[1] // self.cost.shape[1], 1) + of_meeting
        values = candidates - cost - of_parts
        order = values.sort(dim=1, descending=True, stable=True).indices
        needs = self._needs.masked_fill(torch.isinf(values), _IMPOSSIBLE)
        banks, by_bank = needs.gather(1, order).sort(dim=1, stable=True)
        places = torch.arange(values.shape[1], device=values.device)
        ranks = (places - torch.searchsorted(banks, banks)).masked_fill(banks == _IMPOSSIBLE, values.shape[1])
        winners = (ranks * (_IMPOSSIBLE + 1) + banks).topk(size, 1, largest=False).indices
        flat: Tensor = order.gather(1, by_bank).gather(1, winners)
        self.cost = cost.gather(1, flat)
        return flat

    def select(self, sentences: Tensor, open_rows: Tensor, order: Tensor, rows: Tensor, tokens: Tensor) -> None:
        states, stepped = self._states[rows], tokens.unsqueeze(1)
        same = self._table.tokens[states] == stepped
        following = self._table.following[states].gather(1, same.byte().argmax(1, keepdim=True))
        ordinary = self._table.ordinary[states].gather(1, self._class(stepped))
        self._states = torch.where(same.any(1, keepdim=True), following, ordinary).squeeze(1)
        self._table.expand(self._states)
        first = self._table.first[self._states]
        self._begun = torch.where(first.unsqueeze(1), self._costs[rows], self._begun[rows])
        if self._best is not None:
            self._replace(rows, first.nonzero().squeeze(1), sentences)
        self.cost, self._coverage = self.cost.gather(1, order)[open_rows], self._coverage[rows]

    def _replace(self, rows: Tensor, first: Tensor, sentences: Tensor) -> None:
        """Store the rivals of paths, which begin in the `first` of the rows [N'], and of newly met constraints."""
        assert self._best is not None
        # The best tokens come first, and at most exp(-_DISPLACED) tokens can reach the log-probability _DISPLACED.
        values, words = (part[:, : round(math.exp(-_DISPLACED))] for part in self._best)
        if self._rivals is None:
            self._rivals = torch.full_like(words, -1)
            self._replaced = self._rivals.new_full((*self._times.shape, 1, words.shape[1]), -1)
        self._rivals, self._times, self._replaced = self._rivals[rows], self._times[rows], self._replaced[rows]
        before = rows[first]
        alternatives = self._tokens[sentences[before // (len(words) // len(sentences))]]
        is_rival = (values[before] >= _DISPLACED) & (words[before].unsqueeze(2) != alternatives.unsqueeze(1)).all(2)
        self._rivals[first] = words[before].masked_fill(~is_rival, -1)
        which, numbers = ((self._table.kinds[self._states] & MEETS) > 0).nonzero(as_tuple=True)
        if which.numel():
            times = self._times[which, numbers]
            if int(times.max()) == self._replaced.shape[2]:
                self._replaced = pad(self._replaced, (0, 0, 0, 1), value=-1)
            self._replaced[which, numbers, times] = self._rivals[which]
            self._times[which, numbers] += 1


def _spelled(constraints: Sequence[Constraint]) -> tuple[Any, ...]:
    """The key of a sentence's constraints: sentences with equal keys share a trie."""
    return tuple((tuple(map(tuple, each.alternatives)), each.whole) for each in constraints)
