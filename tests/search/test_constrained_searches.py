"""Constrained searches find what they found when each hypothesis was looked at by itself, in plain Python.

Its results are stored. They cover attention, edges of words, prefixes, and constraints that share tokens.
"""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.search import BeamSearch, Constraint, Edges, Limits
from tests.search.test_beam import Looking
from tests.search.test_search import BOS, EOS, PAD

STORED = Path(__file__).with_name("constrained_searches.json")
SIZE, SLOTS, SENTENCES = 11, 5, 3


def searched(seed: int, rows: Sequence[int] = range(SENTENCES)) -> list[Any]:
    """The tokens, log-probability and score of each hypothesis of these sentences of a random search."""
    draws = random.Random(seed)

    def shares(count: int, sharpness: float) -> list[float]:
        values = [math.exp(sharpness * draws.random()) for _ in range(count)]
        return [value / sum(values) for value in values]

    def constraint() -> Constraint:
        ways = [[draws.randrange(3, 9) for _ in range(draws.choice((1, 1, 2, 3)))] for _ in range(draws.randint(1, 3))]
        slots = draws.sample(range(SLOTS), draws.randint(0, 2)) if seed % 4 else []
        # One way may begin anywhere.
        return Constraint([[draws.randrange(3, 6)], *ways], slots, draws.random() < 0.6)

    chains = torch.tensor([[shares(SIZE, 6) for _ in range(SIZE)] for _ in range(SENTENCES)])
    tables = torch.tensor([[[shares(SLOTS, 4) for _ in (0, 1)] for _ in range(SIZE)] for _ in range(SENTENCES)])
    constraints = [[constraint() for _ in range(draws.randint(0, 3))] for _ in range(SENTENCES)]
    edges = Edges([True] * 6 + [draws.random() < 0.5 for _ in range(SIZE - 6)],
                  [False] * 3 + [draws.random() < 0.3 for _ in range(SIZE - 3)])  # fmt: skip
    lengths = torch.tensor([draws.randint(9, 14) for _ in range(SENTENCES)])
    begins = [[{draws.randrange(3, 11): 1}] if seed % 3 == 0 and draws.random() < 0.5 else [] for _ in range(SENTENCES)]
    limits = Limits(
        BOS,
        EOS,
        (PAD, BOS),
        lengths[rows],
        torch.ones(len(rows), SLOTS, dtype=torch.bool) if seed % 4 else None,
        [begins[row] for row in rows],
        constraints=[constraints[row] for row in rows],
        edges=edges if seed % 2 else None,
        heads=(1,) if seed % 5 == 0 else (),
    )
    step = Looking(chains[rows], tables[rows])
    beam = BeamSearch(draws.randint(2, 6), nbest=2, coverage_penalty=0.2 * (seed % 2))
    found = beam(step, step.start(), limits)
    return [[[one.tokens, round(one.log_prob, 4), round(one.score, 4)] for one in nbest] for nbest in found]


@pytest.mark.parametrize("seed", range(60))
def test_a_search_finds_what_is_stored(seed: int) -> None:
    for nbest, expected in zip(searched(seed), json.loads(STORED.read_text())[seed], strict=True):
        for (tokens, *numbers), (others, *stored) in zip(nbest, expected, strict=True):
            assert numbers == pytest.approx(stored, abs=1e-3)
            # The same steps in another order have the same product, and the processor decides which rounds up.
            assert tokens == others or (sorted(tokens) == sorted(others) and numbers == pytest.approx(stored, abs=2e-4))


@pytest.mark.parametrize("seed", range(25, 29))
def test_a_search_does_not_depend_on_the_other_sentences(seed: int) -> None:
    together = searched(seed)
    assert together == [searched(seed, [row])[0] for row in range(SENTENCES)]
