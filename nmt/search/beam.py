"""Batched beam search. All sentences advance together; finished sentences leave the batch.

Tokens, parents and weights of each step are stored without re-ordering. At the end, parents are followed backwards.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.kernels.sizes import round_up
from nmt.search.banks import Banks, Expansion, OneBank
from nmt.search.core import Forbidding, Hypothesis, Limits, Search, SearchState, Step
from nmt.search.prefixes import PrefixStates
from nmt.search.texts import Merging
from nmt.system.errors import SettingError
from nmt.system.graphs import moved
from nmt.system.limits import Positive, Weight


class Finished(NamedTuple):
    """The best finished hypotheses of each sentence, [B, K] each, best first; empty entries have the score -inf.

    steps: the step that ended each hypothesis, from 0. slots: the index of its parent, an open hypothesis before that.
    """

    scores: Tensor
    log_probs: Tensor
    steps: Tensor
    slots: Tensor

    @classmethod
    def none(cls, count: int, size: int, device: torch.device) -> "Finished":
        """Empty entries for `count` sentences and a beam of `size`."""
        floats = torch.zeros(count, size, dtype=torch.float64, device=device)
        return cls(torch.full_like(floats, float("-inf")), floats, floats.long(), floats.long())

    def merge(self, others: "Finished") -> "Finished":
        """The best hypotheses of both, as many as in this."""
        pool = [torch.cat(pair, 1) for pair in zip(self, others, strict=True)]
        order = pool[0].topk(self.scores.shape[1], 1).indices
        return Finished(*(part.gather(1, order) for part in pool))


class BeamStep(NamedTuple):
    """The result of one step for the beams of b sentences, with K hypotheses each.

    parents, words, log_probs [b, K]: of the open hypotheses after the step, best first; -inf marks ended hypotheses.
    Parents are indices of open hypotheses before the step. order [b, K]: indices into the kept candidates.
    finished: the best so far. done [b]: whether no open hypothesis can still win.
    """

    parents: Tensor
    words: Tensor
    log_probs: Tensor
    order: Tensor
    finished: Finished
    done: Tensor


class _Trace(NamedTuple):
    """The record of one step, for following hypotheses backwards.

    sentences [b]: the sentences still searched. tokens, parents [B, K]: of each sentence's open hypotheses after the
    step. weights [b, K', H, S]: of the K' hypotheses that were open before the step.
    """

    sentences: Tensor
    tokens: Tensor
    parents: Tensor
    weights: Tensor | None

    @classmethod
    def of(cls, sentences: Tensor, step: BeamStep, weights: Tensor | None, count: int, size: int) -> "_Trace":
        """The record of a step for some of `count` sentences, with a beam of `size`."""
        path = step.words.new_zeros(2, count, size)
        path[0, sentences, : step.words.shape[1]], path[1, sentences, : step.words.shape[1]] = step.words, step.parents
        shaped = None if weights is None else weights.unflatten(0, (sentences.shape[0], -1))
        return cls(sentences, path[0], path[1], shaped)


def _rows_to_go_on(done: Tensor, log_probs: Tensor, few_sizes: bool) -> Tensor:
    """The rows of open sentences; with `few_sizes`, finished sentences fill the batch up to one of few sizes.

    The hypotheses of these finished sentences are closed: their log-probabilities [b, K] become -inf.
    """
    open_rows = (~done).nonzero().squeeze(1)
    missing = 0 if not few_sizes else round_up(open_rows.numel()) - open_rows.numel()
    if missing == 0:
        return open_rows
    rest = done.nonzero().squeeze(1)[:missing]
    log_probs[rest] = float("-inf")
    return torch.cat([open_rows, rest]).sort().values


def seen_slots(weights: Tensor, slots: Tensor, width: int) -> Tensor:
    """The mean weight over heads of each source slot at a step, [b, K', S], from weights [b K', H, S']."""
    # Slots after the source are document context, which need not be covered.
    seen = weights[..., : slots.shape[1]].mean(1)
    return seen.view(-1, width, seen.shape[1]).double()


def log_coverage(coverage: Tensor, slots: Tensor) -> Tensor:
    """sum_j log(min(sum_t a_tj, 1)) of each hypothesis, [b, K']."""
    # A slot that got no weight at all would cost -inf; 1e-10 keeps hypotheses comparable.
    return (coverage.clamp(min=1e-10, max=1.0).log() * slots.unsqueeze(1)).sum(-1)


class BeamSearch(Search):
    """Beam search with Wu et al. 2016's length and coverage penalties (eq. 14).

    score = log P(Y|X) / lp(Y) + cp(X, Y), lp(Y) = ((5 + |Y|) / 6)^alpha, cp = beta sum_j log(min(sum_t a_tj, 1)).
    |Y| counts the end of sentence. The best K candidates of a step are the beam; those that end are
    finished, the others stay open. A sentence is finished when no open hypothesis can still win. A log-probability only
    falls and cp is at most 0, so the bound is the best open log-probability over lp at the longest allowed length.
    """

    choice = "beam"
    beam_size: int

    def __init__(
        self,
        beam_size: Positive = 5,
        length_penalty: Weight = 1.0,
        coverage_penalty: Weight = 0.0,
        nbest: Positive = 1,
    ) -> None:
        """`length_penalty` is alpha, `coverage_penalty` beta, `nbest` the number of hypotheses to return per sentence.

        Raises:
            SettingError: `nbest` is larger than the beam.
        """
        if nbest > beam_size:
            raise SettingError("nbest", nbest, f"must be at most beam_size={beam_size}. Give search.beam_size={nbest}.")
        self.beam_size, self.nbest = beam_size, nbest
        self.length_penalty, self.coverage_penalty = length_penalty, coverage_penalty

    @property
    def needs_weights(self) -> bool:
        return self.coverage_penalty > 0

    def score_of(self, log_prob: float, length: int) -> float:
        return log_prob / math.pow((5.0 + length) / 6.0, self.length_penalty)

    def _divisor(self, lengths: Tensor) -> Tensor:
        return ((5.0 + lengths.double()) / 6.0) ** self.length_penalty

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        size, device, count = self.beam_size, limits.lengths.device, limits.lengths.shape[0]
        sentences = torch.arange(count, device=device)
        tokens = torch.full((count,), limits.bos, dtype=torch.int64, device=device)
        log_probs = torch.zeros(count, 1, dtype=torch.float64, device=device)  # of the open hypotheses, [b, K']
        coverage: Tensor | None = None  # [b, K', S]
        merging = Merging(limits.shows, limits.eos, count) if limits.shows else None
        # The same text may finish twice, the second time with a better score: keep room for both.
        wanted, room = (2 * self.nbest, 2 * size) if merging is not None else (self.nbest, size)
        finished = Finished.none(count, room, device)
        trace: list[_Trace] = []
        beam = Banks(limits) if any(limits.constraints) else OneBank(limits)
        prefix, forbid, position = PrefixStates.start(limits.prefixes), Forbidding(limits), 0
        while sentences.numel():
            count_open, width = sentences.shape[0], log_probs.shape[1]
            lengths = limits.lengths[sentences]
            step_log_probs, weights, state = step(tokens, state)
            position += 1
            allowed = forbid(step_log_probs, lengths.repeat_interleave(width), position, prefix)
            values, words = beam.candidates(Expansion(allowed, weights, sentences, position, size, prefix))
            values, words = values.view(count_open, width, -1), words.view(count_open, -1)
            if merging is not None:
                merging.restrict(values, words, log_probs, sentences, size)
            covered = None
            if weights is not None and limits.slots is not None and self.needs_weights:
                seen = seen_slots(weights, limits.slots, width)
                coverage = seen if coverage is None else coverage + seen
                covered = log_coverage(coverage, limits.slots[sentences])
            earlier = Finished(*(part[sentences] for part in finished))
            at = torch.full((), position, device=device)
            of_step = self.advance((values, words), log_probs, covered, earlier, (at, lengths, wanted), beam)
            for part, of_sentences in zip(finished, of_step.finished, strict=True):
                part[sentences] = of_sentences
            parents, words, log_probs = of_step[:3]
            trace.append(_Trace.of(sentences, of_step, weights, count, size))
            open_rows = _rows_to_go_on(of_step.done, log_probs, limits.few_sizes)
            rows = (open_rows.unsqueeze(1) * width + parents[open_rows]).flatten()
            state = state.select(rows, open_rows if open_rows.numel() < count_open else None)
            if coverage is not None:
                coverage = coverage[open_rows.unsqueeze(1), parents[open_rows]]
            tokens = words[open_rows].flatten()
            if prefix is not None:
                prefix = prefix.select(rows, tokens)
            if merging is not None:
                merging.select(rows, tokens)
            beam.select(sentences, open_rows, of_step.order, rows, tokens)
            sentences, log_probs = sentences[open_rows], log_probs[open_rows]
        path = torch.stack([torch.stack([each.tokens, each.parents]) for each in trace], 1)
        best = Finished(*(part[:, :wanted] for part in finished))
        weigh = None if trace[0].weights is None else functools.partial(_weights_of, trace, count)
        return hypotheses(best, path, limits.eos, weigh)

    def advance(
        self,
        candidates: tuple[Tensor, Tensor],
        log_probs: Tensor,
        covered: Tensor | None,
        finished: Finished,
        place: tuple[Tensor, Tensor, int],
        bank: OneBank,
    ) -> BeamStep:
        """Keep the best candidates of b sentences with K' open hypotheses each, without any decision on the host.

        Args:
            candidates: log-probabilities [b, K', k] and tokens [b, K' k] of the next tokens.
            log_probs: [b, K'] of the open hypotheses.
            covered: [b, K'] the hypotheses' `log_coverage`; None without a coverage penalty.
            finished: the best finished hypotheses of these sentences so far.
            place: the token's number, from 1; each sentence's maximum length [b]; the number of hypotheses to return.
            bank: divides the beam among the candidates.
        """
        (values, words), (position, lengths, wanted) = candidates, place
        sums = (log_probs.float().unsqueeze(2) + values).flatten(1)
        flat = bank.allocate(sums, min(self.beam_size, sums.shape[1]))
        parents, words = flat // values.shape[2], words.gather(1, flat)
        best = log_probs.gather(1, parents) + values.flatten(1).gather(1, flat).double()
        ends = words == bank.eos
        scores = (best - bank.cost) / self._divisor(position)
        if covered is not None:
            scores = scores + self.coverage_penalty * covered.gather(1, parents)
        scores = scores.masked_fill(~ends, float("-inf"))
        finished = finished.merge(Finished(scores, best, (position - 1).expand_as(parents), parents))
        # Candidates that did not end stay open, in order; -inf marks candidates that ended.
        still, order = best.masked_fill(ends, float("-inf")).sort(1, descending=True)
        # Costs only grow, so the bound on the score that a hypothesis can still reach includes them.
        open_best = (best - bank.cost).masked_fill(ends, float("-inf")).amax(1) / self._divisor(lengths)
        done = (finished.scores[:, wanted - 1] >= open_best) | (lengths <= position) | torch.isinf(open_best)
        return BeamStep(parents.gather(1, order), words.gather(1, order), still, order, finished, done)


def _weights_of(trace: Sequence[_Trace], count: int, slots: Tensor) -> Tensor:
    """The weights [T, B, n, H, S] of n hypotheses, given their parents at each step, `slots` [T, B, n]."""
    first = trace[0].weights
    assert first is not None
    weights = first.new_zeros(*slots.shape, *first.shape[2:], dtype=torch.float32)
    for each, of_step, into in zip(trace, slots, weights, strict=True):
        assert each.weights is not None
        rows = of_step[each.sentences].clamp(max=each.weights.shape[1] - 1)
        into[each.sentences] = each.weights.take_along_dim(rows[..., None, None], 1).float()
    return weights


def hypotheses(
    finished: Finished, path: Tensor, eos: int, weigh: Callable[[Tensor], Tensor] | None
) -> list[list[Hypothesis]]:
    """Follow the finished hypotheses [B, n] backwards, all at once.

    Args:
        finished: the finished hypotheses, best first.
        path: tokens and parents [2, T, B, K] of the open hypotheses after each step.
        eos: the last token of each hypothesis.
        weigh: returns the attention weights [T, B, n, H, S], given the indices [T, B, n] of each hypothesis's parents
            among the open hypotheses before each step; None for no weights.
    """
    scores, log_probs, *places = torch.stack([part.double() for part in finished]).cpu().numpy()
    ends, slots = (each.astype(np.int64) for each in places)
    words, parents = path.cpu().numpy()
    steps, count, size = words.shape
    sentences = np.arange(count)[:, None]
    tokens, through = np.full((2, steps, *ends.shape), -1, dtype=np.int64)
    for position in range(steps - 1, -1, -1):
        passing = ends > position  # did not end at this step
        reachable = np.minimum(slots, size - 1)
        tokens[position] = np.where(passing, words[position][sentences, reachable], -1)
        slots = np.where(passing, parents[position][sentences, reachable], slots)
        through[position] = slots
    weights = None
    if weigh is not None:
        weights = weigh(moved(torch.from_numpy(through), path.device)).permute(1, 2, 3, 0, 4).contiguous().cpu().numpy()
    results: list[list[Hypothesis]] = []
    for sentence in range(count):
        ranked: list[Hypothesis] = []
        for rank, score in enumerate(scores[sentence].tolist()):
            if math.isinf(score):
                break
            length = int(ends[sentence, rank]) + 1
            ranked.append(
                Hypothesis(
                    [*tokens[: length - 1, sentence, rank].tolist(), eos],
                    float(log_probs[sentence, rank]),
                    score,
                    None if weights is None else weights[sentence, rank, :, :length].copy(),
                )
            )
        results.append(ranked)
    return results
