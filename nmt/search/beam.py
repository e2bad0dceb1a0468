"""Batched beam search. All sentences advance together; finished sentences leave the batch.

Tokens, parents and weights of each step are stored without re-ordering. At the end, they are followed backwards.
"""

import math
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
from nmt.system.limits import Positive, Weight


class _Finished(NamedTuple):
    """The best finished hypotheses of each sentence, [B, K] each, best first; score -inf where there is none."""

    scores: Tensor
    log_probs: Tensor
    steps: Tensor
    slots: Tensor

    @classmethod
    def none(cls, count: int, size: int, device: torch.device) -> "_Finished":
        """Nothing finished yet of `count` sentences, with a beam of `size`."""
        floats = torch.zeros(count, size, dtype=torch.float64, device=device)
        return cls(torch.full_like(floats, float("-inf")), floats, floats.long(), floats.long())


class _Trace(NamedTuple):
    """What one step stores for following hypotheses backwards.

    sentences [b]: the sentences that were searched. tokens, parents [B, K]: one for each open hypothesis of a sentence
    after this step. weights [b, K', H, S] of the K' hypotheses that were open before the step.
    """

    sentences: Tensor
    tokens: Tensor
    parents: Tensor
    weights: Tensor | None


def _rows_to_go_on(done: Tensor, log_probs: Tensor, few_sizes: bool) -> Tensor:
    """The open sentences; with `few_sizes` also as many finished ones as make one of few sizes, in order.

    The hypotheses of these are closed: their log-probabilities [b, K] become -inf.
    """
    open_rows = (~done).nonzero().squeeze(1)
    missing = 0 if not few_sizes else round_up(open_rows.numel()) - open_rows.numel()
    if missing == 0:
        return open_rows
    rest = done.nonzero().squeeze(1)[:missing]
    log_probs[rest] = float("-inf")
    return torch.cat([open_rows, rest]).sort().values


def _seen(weights: Tensor, slots: Tensor, width: int) -> Tensor:
    """The weight of each source slot at a step, [b, K', S], from weights [b K', H, S'] and slots [B, S]."""
    # Slots after those of the source are context, which nobody needs to cover.
    seen = weights[..., : slots.shape[1]].mean(1)
    return seen.view(-1, width, seen.shape[1]).double()


def _covered(coverage: Tensor, slots: Tensor) -> Tensor:
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
        # A text may end again with a better score: there is room for both.
        wanted, room = (2 * self.nbest, 2 * size) if merging is not None else (self.nbest, size)
        finished = _Finished.none(count, room, device)
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
            candidates = (log_probs.float().unsqueeze(2) + values).flatten(1)
            flat = beam.allocate(candidates, min(size, candidates.shape[1]))
            parents, words = flat // values.shape[2], words.gather(1, flat)
            best = log_probs.gather(1, parents) + values.flatten(1).gather(1, flat).double()
            ends = words == limits.eos
            if weights is not None and limits.slots is not None and self.needs_weights:
                seen = _seen(weights, limits.slots, width)
                coverage = seen if coverage is None else coverage + seen
            scores = (best - beam.cost) / self._divisor(torch.full((), position, device=device))
            if coverage is not None and limits.slots is not None:
                covered = _covered(coverage, limits.slots[sentences])
                scores = scores + self.coverage_penalty * covered.gather(1, parents)
            scores = scores.masked_fill(~ends, float("-inf"))
            finished = self._merge(finished, sentences, scores, best, position, parents)
            # Candidates that did not end stay open, in order; -inf stands for a candidate that ended.
            log_probs, order = best.masked_fill(ends, float("-inf")).sort(1, descending=True)
            parents, words = parents.gather(1, order), words.gather(1, order)
            trace.append(self._trace(sentences, words, parents, weights, count, width))
            # Costs only grow, so that they count for what a hypothesis can still reach, too.
            open_best = (best - beam.cost).masked_fill(ends, float("-inf")).amax(1) / self._divisor(lengths)
            best_scores = finished.scores[sentences]
            done = (best_scores[:, wanted - 1] >= open_best) | (lengths <= position) | torch.isinf(open_best)
            open_rows = _rows_to_go_on(done, log_probs, limits.few_sizes)
            rows = (open_rows.unsqueeze(1) * width + parents[open_rows]).flatten()
            state = state.select(rows, open_rows if open_rows.numel() < count_open else None)
            if coverage is not None:
                coverage = coverage[open_rows.unsqueeze(1), parents[open_rows]]
            tokens = words[open_rows].flatten()
            if prefix is not None:
                prefix = prefix.select(rows, tokens)
            if merging is not None:
                merging.select(rows, tokens)
            beam.select(sentences, open_rows, order, rows, tokens)
            sentences, log_probs = sentences[open_rows], log_probs[open_rows]
        return self._follow(_Finished(*(part[:, :wanted] for part in finished)), trace, limits.eos)

    def _merge(
        self,
        finished: _Finished,
        sentences: Tensor,
        scores: Tensor,
        log_probs: Tensor,
        position: int,
        parents: Tensor,
    ) -> _Finished:
        earlier = _Finished(*(part[sentences] for part in finished))
        pool = _Finished(
            torch.cat([earlier.scores, scores], 1),
            torch.cat([earlier.log_probs, log_probs], 1),
            torch.cat([earlier.steps, torch.full_like(parents, position - 1)], 1),
            torch.cat([earlier.slots, parents], 1),
        )
        _, order = pool.scores.topk(finished.scores.shape[1], 1)
        merged = _Finished(*(part.clone() for part in finished))
        for target, source in zip(merged, pool, strict=True):
            target[sentences] = source.gather(1, order)
        return merged

    @staticmethod
    def _trace(
        sentences: Tensor, words: Tensor, parents: Tensor, weights: Tensor | None, count: int, width: int
    ) -> _Trace:
        all_words = words.new_zeros(count, words.shape[1])
        all_parents = parents.new_zeros(count, parents.shape[1])
        all_words[sentences], all_parents[sentences] = words, parents
        shaped = None if weights is None else weights.unflatten(0, (sentences.shape[0], width))
        return _Trace(sentences, all_words, all_parents, shaped)

    def _follow(self, finished: _Finished, trace: list[_Trace], eos: int) -> list[list[Hypothesis]]:
        """Follow the finished hypotheses backwards, all at once, and cut out their weights."""
        count = finished.scores.shape[0]
        scores = finished.scores.cpu().numpy()
        log_probs = finished.log_probs.cpu().numpy()
        ends = finished.steps.cpu().numpy()
        slots = finished.slots.cpu().numpy().copy()
        n = scores.shape[1]
        sentences = np.arange(count)[:, None]
        tokens = np.full((len(trace), count, n), -1, dtype=np.int64)
        first = trace[0].weights
        weights = None
        if first is not None:
            weights = np.zeros((count, n, first.shape[2], len(trace), first.shape[3]), dtype=np.float32)
        for position in range(len(trace) - 1, -1, -1):
            step = trace[position]
            # `slots` are the hypotheses, open before `position`, that the finished ones go through.
            passing = ends > position  # did not end at this step
            words, parents = step.tokens.cpu().numpy(), step.parents.cpu().numpy()
            reachable = np.minimum(slots, words.shape[1] - 1)
            tokens[position] = np.where(passing, words[sentences, reachable], tokens[position])
            slots = np.where(passing, parents[sentences, reachable], slots)
            if weights is not None:
                assert step.weights is not None
                index = np.full(count, -1)
                index[step.sentences.cpu().numpy()] = np.arange(step.sentences.shape[0])
                involved = (ends >= position) & (index >= 0)[:, None]
                rows, columns = involved.nonzero()
                cut = step.weights.float().cpu().numpy()
                weights[rows, columns, :, position] = cut[index[rows], slots[rows, columns]]
        results: list[list[Hypothesis]] = []
        for sentence in range(count):
            ranked: list[Hypothesis] = []
            for rank in range(n):
                if np.isinf(scores[sentence, rank]):
                    break
                length = int(ends[sentence, rank]) + 1
                ranked.append(
                    Hypothesis(
                        [*tokens[: length - 1, sentence, rank].tolist(), eos],
                        float(log_probs[sentence, rank]),
                        float(scores[sentence, rank]),
                        None if weights is None else weights[sentence, rank, :, :length].copy(),
                    )
                )
            results.append(ranked)
        return results
