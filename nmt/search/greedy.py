"""Greedy search and ancestral sampling: one hypothesis per row, finished rows leave the batch."""

from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Tensor

from nmt.limits import Limit, NotNegative, Positive
from nmt.search.core import Forbidding, Hypothesis, Limits, Search, SearchState, Step
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
        token_rows: list[Tensor] = []  # per step: [B] tokens, -1 for finished sentences
        weight_rows: list[tuple[Tensor, Tensor] | None] = []  # per step: its live sentences and their weights
        prefix, forbid = PrefixStates.start(limits.prefixes), Forbidding(limits)
        position = 0
        while live.numel():
            log_probs, weights, state = step(tokens, state)
            position += 1
            allowed = forbid(log_probs, limits.lengths[live], position, prefix)
            tokens = self.choose(allowed)
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


class SamplingSearch(GreedySearch):
    """Each token is sampled from the model's distribution, sharpened by a temperature, of the k most probable tokens.

    Each sentence gets `nbest` independent samples, best first. `seed` makes them reproducible.
    """

    def __init__(
        self, temperature: Temperature = 1.0, top_k: NotNegative = 0, nbest: Positive = 1, seed: int = 1
    ) -> None:
        """`top_k=0` samples from the whole vocabulary."""
        super().__init__()
        self.temperature, self.top_k, self.nbest = temperature, top_k, nbest
        self.generator_seed = seed
        self._generators: dict[str, torch.Generator] = {}
        self._states: dict[str, str] = {}

    @property
    def draws(self) -> bool:
        return True

    def random_state(self) -> dict[str, str]:
        states = {name: generator.get_state() for name, generator in self._generators.items()}
        return {**self._states, **{name: state.numpy().tobytes().hex() for name, state in states.items()}}

    def set_random_state(self, state: Mapping[str, str]) -> None:
        self._generators, self._states = {}, dict(state)

    def _generator(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self._generators:
            self._generators[name] = torch.Generator(device).manual_seed(self.generator_seed)
            if name in self._states:
                state = torch.frombuffer(bytearray.fromhex(self._states[name]), dtype=torch.uint8)
                self._generators[name].set_state(state)
        return self._generators[name]

    def choose(self, log_probs: Tensor) -> Tensor:
        generator = self._generator(log_probs.device)
        sharpened = log_probs / self.temperature
        if self.top_k:
            lowest = sharpened.topk(min(self.top_k, sharpened.shape[1]), -1).values[:, -1:]
            sharpened = sharpened.masked_fill(sharpened < lowest, float("-inf"))
        return torch.multinomial(torch.softmax(sharpened, -1), 1, generator=generator).squeeze(1)

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        return [
            sorted(samples, key=lambda hypothesis: -hypothesis.score)
            for samples in zip(*(self._run(step, state, limits) for _ in range(self.nbest)), strict=True)
        ]


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
