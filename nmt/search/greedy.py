"""Greedy search and ancestral sampling: one hypothesis per row, finished rows leave the batch."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nmt.search.core import Forbidding, Hypothesis, Limits, Search, SearchState, Step
from nmt.search.prefixes import PrefixStates
from nmt.system.errors import UserError
from nmt.system.limits import Limit, NotNegative, Positive

Temperature = Annotated[float, Limit(lambda value: value >= 1e-6, "at least 0.000001; search=greedy is its limit")]


class GreedySearch(Search):
    """The most probable token at every step."""

    choice = "greedy"
    beam_size: int | None = 1

    def __init__(self) -> None:
        """Greedy search has no settings."""

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        return [[hypothesis] for hypothesis in _run(step, state, limits, lambda log_probs, *_: log_probs.argmax(-1))]


class SamplingSearch(GreedySearch):
    """Samples each token from the model's distribution over the k most probable tokens, with a temperature.

    Each sentence gets `nbest` independent samples, best first. Samples depend on `seed` and on the sentence alone, not
    on its batch.
    """

    choice = "sampling"
    beam_size = None

    def __init__(
        self, temperature: Temperature = 1.0, top_k: NotNegative = 0, nbest: Positive = 1, seed: int = 1
    ) -> None:
        """`top_k=0` samples from the whole vocabulary."""
        super().__init__()
        self.temperature, self.top_k, self.nbest, self.seed = temperature, top_k, nbest, seed

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        uniform = self._uniform(limits)
        drawn = [_run(step, state, limits, partial(self._choose, numbers)) for numbers in uniform.unbind(-1)]
        return [sorted(samples, key=lambda hypothesis: -hypothesis.score) for samples in zip(*drawn, strict=True)]

    def _uniform(self, limits: Limits) -> Tensor:
        """Random numbers [B, T, nbest] from 0 to 1 for each sentence, step and sample."""
        sources = limits.sources or [[row] for row in range(len(limits.lengths))]
        rows = [
            np.random.default_rng((self.seed % 2**64, *source)).random((length, self.nbest), dtype=np.float32)
            for source, length in zip(sources, limits.lengths.tolist(), strict=True)
        ]
        return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True).to(limits.lengths.device)

    def _choose(self, uniform: Tensor, log_probs: Tensor, live: Tensor, position: int) -> Tensor:
        """The tokens at which the cumulative probabilities exceed the random numbers [B, T]."""
        sharpened = log_probs / self.temperature
        if self.top_k:
            lowest = sharpened.topk(min(self.top_k, sharpened.shape[1]), -1).values[:, -1:]
            sharpened = sharpened.masked_fill(sharpened < lowest, float("-inf"))
        sums = torch.softmax(sharpened, -1, dtype=torch.float64).cumsum(-1)
        drawn = torch.searchsorted(sums, uniform[live, position - 1, None] * sums[:, -1:], right=True).squeeze(1)
        return drawn.clamp(max=sums.shape[1] - 1)


def _run(
    step: Step, state: SearchState, limits: Limits, choose: Callable[[Tensor, Tensor, int], Tensor]
) -> list[Hypothesis]:
    """Search with one hypothesis per sentence.

    `choose` returns the next tokens [N] from log-probabilities [N, V], the numbers [N] of their sentences and the
    number of the token, from 1.
    """
    if any(limits.constraints):
        raise UserError("A glossary and keep= need beam search. Give search=beam, or a beam_size of more than 1.")
    count = limits.lengths.shape[0]
    device = limits.lengths.device
    live = torch.arange(count, device=device)
    tokens = torch.full((count,), limits.bos, dtype=torch.int64, device=device)
    totals = torch.zeros(count, dtype=torch.float64, device=device)
    token_rows: list[Tensor] = []  # per step: [B] tokens, -1 for finished sentences
    weight_rows: list[tuple[Tensor, Tensor] | None] = []  # per step: its live sentences and their weights
    prefix, forbid = PrefixStates.start(limits.prefixes), Forbidding(limits)
    position = 0
    while live.numel():
        log_probs, weights, state = step(tokens, state)
        position += 1
        allowed = forbid(log_probs, limits.lengths[live], position, prefix)
        tokens = choose(allowed, live, position)
        totals[live] += allowed.gather(1, tokens.unsqueeze(1)).squeeze(1).double()
        row = torch.full((count,), -1, dtype=torch.int64, device=device)
        row[live] = tokens
        token_rows.append(row)
        weight_rows.append(None if weights is None else (live, weights))
        unfinished = (tokens != limits.eos).nonzero().squeeze(1)
        if prefix is not None:
            prefix = prefix.select(unfinished, tokens[unfinished])
        if unfinished.numel() < live.numel():
            live, tokens = live[unfinished], tokens[unfinished]
            state = state.select(unfinished, unfinished)
    return _collect(token_rows, weight_rows, totals)


def _collect(
    token_rows: list[Tensor], weight_rows: list[tuple[Tensor, Tensor] | None], totals: Tensor
) -> list[Hypothesis]:
    rows = torch.stack(token_rows, 1).tolist()
    weights = None
    if weight_rows[0] is not None:
        first = weight_rows[0][1]
        weights = first.new_zeros(len(rows), first.shape[1], len(token_rows), first.shape[2], dtype=torch.float32)
        for position, entry in enumerate(weight_rows):
            assert entry is not None
            weights[entry[0], :, position] = entry[1].float()
        weights = weights.cpu()
    hypotheses = []
    for index, (row, total) in enumerate(zip(rows, totals.tolist(), strict=True)):
        tokens = [token for token in row if token >= 0]
        sentence_weights = None if weights is None else weights[index, :, : len(tokens)].numpy().copy()
        hypotheses.append(Hypothesis(tokens, total, total, sentence_weights))
    return hypotheses
