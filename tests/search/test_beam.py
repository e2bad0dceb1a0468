"""The beam's scores from its hypotheses' own weights, and when it may stop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.kernels.sizes import round_up
from nmt.search import BeamSearch, SearchState
from tests.search.test_search import BOS, EOS, A, B, Chain, Markov, V, limits, matrix, random_matrices

SLOTS = 3


class Looking(Markov):
    """A chain whose two heads look where the sentence and the previous word say, each head elsewhere."""

    def __init__(self, matrices: Tensor, tables: Tensor) -> None:
        """`tables` [B, V, 2, S] are the weights after each word."""
        super().__init__(matrices)
        self.tables = tables

    def __call__(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        assert isinstance(state, Chain)
        log_probs, _, following = super().__call__(tokens, state)
        return log_probs, self.tables[state.sentence, tokens], following


@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.3, 2.0]),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, SLOTS)), min_size=1, max_size=4),
)
def test_a_score_is_that_of_the_hypothesis_own_tokens_and_weights(
    seed: int, size: int, beta: float, sentences: list[tuple[int, int]]
) -> None:
    """log P / lp + beta sum_j log(min(sum_t a_tj, 1)) over real slots, a_tj the mean over heads."""
    chains = random_matrices(seed, len(sentences))
    generator = torch.Generator().manual_seed(seed)
    tables = torch.softmax(2 * torch.randn(len(sentences), V, 2, SLOTS, generator=generator), -1)
    longest, real = ([sentence[part] for sentence in sentences] for part in (0, 1))
    slots = torch.arange(SLOTS) < torch.tensor(real).unsqueeze(1)
    step = Looking(chains, tables)
    beam = BeamSearch(size, length_penalty=0.7, coverage_penalty=beta, nbest=size)
    for row, hypotheses in enumerate(beam(step, step.start(), limits(longest, slots))):
        for hypothesis in hypotheses:
            inputs = [BOS, *hypothesis.tokens[:-1]]
            steps = list(zip(inputs, hypothesis.tokens, strict=True))
            log_prob = sum(math.log(chains[row, before, after]) for before, after in steps)
            coverage = [
                sum(float(tables[row, word, head, slot]) / 2 for word in inputs for head in (0, 1))
                for slot in range(real[row])
            ]
            penalty = sum(math.log(min(share, 1.0)) for share in coverage)
            expected = log_prob / ((5 + len(steps)) / 6) ** 0.7 + beta * penalty
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)


class Counting(Looking):
    """It keeps the number of rows of each step."""

    def __init__(self, matrices: Tensor, tables: Tensor) -> None:
        super().__init__(matrices, tables)
        self.rows: list[int] = []

    def __call__(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        self.rows.append(len(tokens))
        return super().__call__(tokens, state)


@given(
    st.integers(0, 10_000),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.6]),
    st.lists(st.integers(1, 9), min_size=9, max_size=20),
)
def test_finished_sentences_that_stay_for_a_size_change_nothing(
    seed: int, size: int, beta: float, longest: list[int]
) -> None:
    chains = random_matrices(seed, len(longest))
    tables = torch.softmax(torch.randn(len(longest), V, 2, SLOTS), -1)
    told = limits(longest, torch.ones(len(longest), SLOTS, dtype=torch.bool))
    beam = BeamSearch(size, coverage_penalty=beta, nbest=size)
    steps = [Counting(chains, tables) for _ in range(2)]
    all_sizes, few_sizes = (
        beam(step, step.start(), told._replace(few_sizes=few)) for step, few in zip(steps, (False, True), strict=True)
    )
    for one, other in zip(all_sizes, few_sizes, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.score for each in one] == [each.score for each in other]
        for each, same in zip(one, other, strict=True):
            assert each.weights is not None
            assert same.weights is not None
            assert (each.weights == same.weights).all()
    count, expected = len(longest), []
    for rows in steps[0].rows[1:]:  # in the first step, a sentence has one row
        count = min(count, round_up(rows // size))
        expected.append(count * size)
    assert steps[1].rows[1:] == expected


def test_coverage_follows_hypotheses_that_change_places() -> None:
    """The hypothesis "A" leads, then "B A" passes "A A": each keeps what its own words looked at."""
    chain = matrix({BOS: {A: 0.6, B: 0.4}, A: {EOS: 0.5, A: 0.3, B: 0.2}, B: {A: 0.9, B: 0.1}})
    tables = torch.zeros(1, V, 2, 2)
    tables[0, BOS] = torch.tensor([[0.5, 0.5], [0.1, 0.9]])  # mean 0.3 and 0.7
    tables[0, A] = torch.tensor([[0.2, 0.8], [0.0, 1.0]])  # mean 0.1 and 0.9
    tables[0, B] = torch.tensor([[0.6, 0.4], [0.2, 0.8]])  # mean 0.4 and 0.6
    step = Looking(chain, tables)
    beam = BeamSearch(beam_size=2, length_penalty=0.0, coverage_penalty=1.0, nbest=2)
    [(first, second)] = beam(step, step.start(), limits([3], torch.tensor([[True, True]])))
    # Slot 0 gets 0.3 + 0.1 before the end of "A", 0.3 + 0.4 + 0.1 before that of "B A"; slot 1 more than 1 in both.
    assert first.tokens == [B, A, EOS]
    assert first.score == pytest.approx(math.log(0.4 * 0.9 * 0.5) + math.log(0.8), abs=1e-6)
    assert second.tokens == [A, EOS]
    assert second.score == pytest.approx(math.log(0.6 * 0.5) + math.log(0.4), abs=1e-6)


def test_a_sentence_is_done_by_the_bound_at_its_longest_length() -> None:
    """At alpha = 1 "A B" ends at log 0.45 / (8/6) = -0.60, above -0.69, though log 0.45 / (6/6) = -0.80 is below."""
    chain = matrix({BOS: {EOS: 0.5, A: 0.45, B: 0.05}, A: {B: 1.0}, B: {EOS: 1.0}})
    step = Markov(chain)
    [[best]] = BeamSearch(2, length_penalty=1.0)(step, step.start(), limits([3]))
    assert best.tokens == [A, B, EOS]
    assert best.score == pytest.approx(math.log(0.45) / (8 / 6))
    # With 0.39 the bound is log 0.39 / (8/6) = -0.71: nothing open can win, and the first step is the last.
    step = Markov(matrix({BOS: {EOS: 0.5, A: 0.39, B: 0.11}, A: {B: 1.0}, B: {EOS: 1.0}}))
    [[best]] = BeamSearch(2, length_penalty=1.0)(step, step.start(), limits([3]))
    assert best.tokens == [EOS]
    assert step.calls == 1
