"""Greedy search and ancestral sampling: one hypothesis a row, finished rows leave the batch."""

from typing import Annotated

import torch
from torch import Tensor

from nmt.limits import Limit, NotNegative, Positive
from nmt.search.core import Hypothesis, Limits, Search, SearchState, Step, forbid
from nmt.search.prefixes import PrefixStates

Temperature = Annotated[float, Limit(lambda value: value > 0, "greater than 0; search=greedy is its limit")]


class GreedySearch(Search):
    """The most probable token at every step."""

    def __init__(self) -> None:
        """Greedy search has no settings."""

    def choose(self, log_probs: Tensor) -> Tensor:
        """The next tokens [N] from log-probabilities [N, V]."""
        return log_probs.argmax(-1)

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        return [[hypothesis] for hypothesis in self._run(step, state, limits)]

    def _run(self, step: Step, state: SearchState, limits: Limits) -> list[Hypothesis]:
        count = limits.lengths.shape[0]
        device = limits.lengths.device
        live = torch.arange(count, device=device)
        tokens = torch.full((count,), limits.bos, dtype=torch.int64, device=device)
        totals = torch.zeros(count, dtype=torch.float64, device=device)
        chosen: list[Tensor] = []  # a step: [B] tokens, -1 where the sentence had finished
        looked: list[tuple[Tensor, Tensor] | None] = []  # a step: its live sentences and their weights
        prefix = PrefixStates.start(limits.prefixes)
        position = 0
        while live.numel():
            log_probs, weights, state = step(tokens, state)
            position += 1
            allowed = forbid(log_probs, limits, limits.lengths[live] <= position, prefix)
            tokens = self.choose(allowed)
            totals[live] += allowed.gather(1, tokens.unsqueeze(1)).squeeze(1).double()
            row = torch.full((count,), -1, dtype=torch.int64, device=device)
            row[live] = tokens
            chosen.append(row)
            looked.append(None if weights is None else (live, weights))
            still = (tokens != limits.eos).nonzero().squeeze(1)
            if prefix is not None:
                prefix = prefix.select(still, tokens[still])
            if still.numel() < live.numel():
                live, tokens = live[still], tokens[still]
                state = state.select(still, still)
        return _collect(chosen, looked, totals)


class SamplingSearch(GreedySearch):
    """Draws each token from the model's distribution, sharpened by a temperature, cut to the k most probable.

    `nbest` independent draws a sentence, best first. `seed` makes them reproducible.
    """

    def __init__(
        self, temperature: Temperature = 1.0, top_k: NotNegative = 0, nbest: Positive = 1, seed: int = 1
    ) -> None:
        """`top_k=0` keeps the whole vocabulary."""
        super().__init__()
        self.temperature, self.top_k, self.nbest = temperature, top_k, nbest
        self.generator_seed = seed
        self._generators: dict[str, torch.Generator] = {}

    def choose(self, log_probs: Tensor) -> Tensor:
        generator = self._generators.setdefault(
            str(log_probs.device), torch.Generator(log_probs.device).manual_seed(self.generator_seed)
        )
        sharpened = log_probs / self.temperature
        if self.top_k:
            lowest = sharpened.topk(min(self.top_k, sharpened.shape[1]), -1).values[:, -1:]
            sharpened = sharpened.masked_fill(sharpened < lowest, float("-inf"))
        return torch.multinomial(torch.softmax(sharpened, -1), 1, generator=generator).squeeze(1)

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        draws = [self._run(step, state, limits) for _ in range(self.nbest)]
        return [sorted(own, key=lambda hypothesis: -hypothesis.score) for own in map(list, zip(*draws, strict=True))]


def _collect(chosen: list[Tensor], looked: list[tuple[Tensor, Tensor] | None], totals: Tensor) -> list[Hypothesis]:
    rows = torch.stack(chosen, 1).tolist()
    weights = None
    if looked[0] is not None:
        first = looked[0][1]
        weights = first.new_zeros(len(rows), first.shape[1], len(chosen), first.shape[2], dtype=torch.float32)
        for position, entry in enumerate(looked):
            assert entry is not None
            weights[entry[0], :, position] = entry[1].float()
        weights = weights.cpu()
    hypotheses = []
    for index, (row, total) in enumerate(zip(rows, totals.tolist(), strict=True)):
        tokens = [token for token in row if token >= 0]
        own = None if weights is None else weights[index, :, : len(tokens)].numpy().copy()
        hypotheses.append(Hypothesis(tokens, total, total, own))
    return hypotheses
