"""Search on hand-written transition matrices, with no model, and against exhaustive search."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.search import BeamSearch, GreedySearch, Hypothesis, Limits, SamplingSearch, SearchState
from nmt.system.errors import UserError
from nmt.system.limits import checked

PAD, BOS, EOS, A, B = range(5)
V = 5


class Chain(NamedTuple):
    """A state that knows its sentence and what was said, so that a wrong re-ordering shows."""

    sentence: Tensor
    said: Tensor

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "Chain":
        return Chain(self.sentence[rows], self.said[rows])


class Markov:
    """log p(next | previous) from one transition matrix a sentence; weights say sentence and step."""

    def __init__(self, matrices: Tensor) -> None:
        self.matrices = matrices  # [B, V, V], rows sum to one
        self.calls = 0

    def start(self) -> Chain:
        count = self.matrices.shape[0]
        return Chain(torch.arange(count), torch.zeros(count, 0, dtype=torch.int64))

    def __call__(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        assert isinstance(state, Chain)
        self.calls += 1
        said = torch.cat([state.said, tokens.unsqueeze(1)], 1)
        log_probs = self.matrices[state.sentence, tokens].log()
        step = float(state.said.shape[1])
        # one head, three slots: the sentence, the step, the previous token
        weights = torch.stack(
            [state.sentence.float(), torch.full_like(state.sentence, step).float(), tokens.float()], 1
        )
        return log_probs, weights.unsqueeze(1), Chain(state.sentence, said)


def limits(lengths: list[int], slots: Tensor | None = None) -> Limits:
    return Limits(BOS, EOS, (PAD, BOS), torch.tensor(lengths), slots)


def matrix(rows: dict[int, dict[int, float]]) -> Tensor:
    made = torch.full((1, V, V), 1e-30)
    for before, row in rows.items():
        for after, probability in row.items():
            made[0, before, after] = probability
    return made


#: A is the better first word, but what follows B is certain: greedy says A, a beam of two finds B.
GARDEN_PATH = matrix({BOS: {A: 0.6, B: 0.4}, A: {A: 0.5, EOS: 0.3, B: 0.2}, B: {EOS: 1.0}})


def check_weights(hypothesis: Hypothesis, sentence: int) -> None:
    """The weights that came with the hypothesis are those of its own steps."""
    assert hypothesis.weights is not None
    inputs = [BOS, *hypothesis.tokens[:-1]]
    expected = [[float(sentence), float(t), float(token)] for t, token in enumerate(inputs)]
    assert hypothesis.weights[0].tolist() == expected


def test_greedy_follows_the_best_word() -> None:
    step = Markov(GARDEN_PATH)
    [[found]] = GreedySearch()(step, step.start(), limits([4]))
    assert found.tokens == [A, A, A, EOS]  # the last allowed token can only be the end
    assert found.log_prob == pytest.approx(math.log(0.6 * 0.5 * 0.5 * 0.3))
    check_weights(found, 0)


def test_a_beam_of_two_leaves_the_garden_path() -> None:
    step = Markov(GARDEN_PATH)
    [found] = BeamSearch(beam_size=2, length_penalty=0.0, nbest=2)(step, step.start(), limits([9]))
    assert found[0].tokens == [B, EOS]
    assert found[0].log_prob == pytest.approx(math.log(0.4))
    # The third candidate of step 2, "A end" at 0.18, ranks outside a beam of two (after 0.4 and "A A" at 0.3); of
    # step 3, "A A end" at 0.09 ranks second, after "A A A" at 0.15, which goes on and falls below it.
    assert found[1].tokens == [A, A, EOS]
    assert found[1].log_prob == pytest.approx(math.log(0.6 * 0.5 * 0.3))
    for hypothesis in found:
        check_weights(hypothesis, 0)


def test_the_length_penalty_is_wus() -> None:
    """lp(Y) = ((5 + |Y|) / 6)^alpha: at alpha = 1 a mean, so that a long hypothesis can overtake."""
    chain = matrix({BOS: {A: 0.5, EOS: 0.5}, A: {A: 0.9, EOS: 0.1}})
    for alpha in (0.0, 1.0):
        step = Markov(chain)
        [found] = BeamSearch(beam_size=4, length_penalty=alpha, nbest=4)(step, step.start(), limits([4]))
        for hypothesis in found:
            n = len(hypothesis.tokens)
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / ((5 + n) / 6) ** alpha)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)


def test_the_coverage_penalty_by_hand() -> None:
    """cp = beta * sum_j log(min(sum_t a_tj, 1)) over real slots only."""

    def step(tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        log_probs = torch.full((tokens.shape[0], V), -1e9)
        log_probs[:, A] = math.log(0.4)
        log_probs[:, EOS] = math.log(0.6)
        weights = torch.tensor([0.25, 0.75, 0.0]).expand(tokens.shape[0], 1, 3)
        return log_probs, weights, state

    slots = torch.tensor([[True, True, False]])
    beam = BeamSearch(beam_size=3, length_penalty=0.0, coverage_penalty=2.0, nbest=3)
    [found] = beam(step, Chain(torch.zeros(1), torch.zeros(1, 0)), limits([3], slots))
    by_length = {len(hypothesis.tokens): hypothesis for hypothesis in found}
    for n in (1, 2, 3):
        log_prob = math.log(0.6) + (n - 1) * math.log(0.4) if n < 3 else 2 * math.log(0.4) + math.log(0.6)
        covered = math.log(min(0.25 * n, 1)) + math.log(min(0.75 * n, 1))
        assert by_length[n].score == pytest.approx(log_prob + 2.0 * covered)


def test_forbidden_tokens_are_never_produced() -> None:
    chain = matrix({BOS: {PAD: 0.9, A: 0.1}, A: {BOS: 0.9, EOS: 0.1}})
    for search in (GreedySearch(), BeamSearch(3), SamplingSearch(nbest=3)):
        step = Markov(chain)
        for hypothesis in search(step, step.start(), limits([6]))[0]:
            assert not {PAD, BOS} & set(hypothesis.tokens)


def random_matrices(seed: int, sentences: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(sentences, V, V, generator=generator), -1)


def every_hypothesis(chain: Tensor, longest: int) -> list[tuple[tuple[int, ...], float]]:
    """All sentences up to `longest` tokens with their log-probabilities."""
    found = []
    for length in range(1, longest + 1):
        for words in itertools.product((A, B, 1), repeat=length - 1):
            if BOS in words:
                continue
            tokens = (*words, EOS)
            pairs = zip((BOS, *words), tokens, strict=True)
            found.append((tokens, sum(math.log(chain[before, after]) for before, after in pairs)))
    return found


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.6, 1.0]), st.integers(1, 4))
def test_a_beam_that_keeps_everything_is_exhaustive_search(seed: int, alpha: float, longest: int) -> None:
    chains = random_matrices(seed, 2)
    step = Markov(chains)
    beam = BeamSearch(beam_size=40, length_penalty=alpha)
    found = beam(step, step.start(), limits([longest, longest]))
    for sentence in (0, 1):
        scored = [
            (log_prob / ((5 + len(tokens)) / 6) ** alpha, tokens)
            for tokens, log_prob in every_hypothesis(chains[sentence], longest)
        ]
        best = max(scored)
        assert found[sentence][0].score == pytest.approx(best[0], abs=1e-5)
        assert tuple(found[sentence][0].tokens) == best[1]
        check_weights(found[sentence][0], sentence)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1.0]), st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_greedy_is_a_beam_of_one(seed: int, alpha: float, lengths: list[int]) -> None:
    chains = random_matrices(seed, len(lengths))
    results = []
    for search in (GreedySearch(), BeamSearch(1, length_penalty=alpha)):
        step = Markov(chains)
        results.append(search(step, step.start(), limits(lengths)))
    for greedy, beam in zip(*results, strict=True):
        assert greedy[0].tokens == beam[0].tokens
        assert greedy[0].log_prob == pytest.approx(beam[0].log_prob, abs=1e-5)
        assert greedy[0].weights is not None
        assert beam[0].weights is not None
        assert (greedy[0].weights == beam[0].weights).all()


@given(st.integers(0, 10_000), st.integers(1, 4), st.lists(st.integers(1, 7), min_size=2, max_size=5))
def test_a_batch_equals_its_sentences_one_by_one(seed: int, size: int, lengths: list[int]) -> None:
    chains = random_matrices(seed, len(lengths))
    step = Markov(chains)
    together = BeamSearch(size, nbest=size)(step, step.start(), limits(lengths))
    for row, length in enumerate(lengths):
        own = Markov(chains[row : row + 1])
        [alone] = BeamSearch(size, nbest=size)(own, own.start(), limits([length]))
        assert [one.tokens for one in alone] == [one.tokens for one in together[row]]
        for one, other in zip(alone, together[row], strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-6)
            check_weights(other, row)


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_stopping_early_changes_no_result(seed: int, size: int) -> None:
    """The n best of a beam are the same whether it may stop when nothing open can win, or has to go on."""
    chains = random_matrices(seed, 1)
    step = Markov(chains)
    [found] = BeamSearch(size)(step, step.start(), limits([8]))
    # A huge nbest (all that the beam holds) keeps the search going until the beam is full or the end is reached.
    step = Markov(chains)
    [longer] = BeamSearch(size, nbest=size)(step, step.start(), limits([8]))
    assert found[0].tokens == longer[0].tokens


def test_finished_hypotheses_do_not_end_the_search_while_an_open_one_is_better() -> None:
    chain = matrix({BOS: {A: 0.9, EOS: 0.06, B: 0.04}, A: {B: 0.94, EOS: 0.06}, B: {EOS: 0.95, A: 0.05}})
    for size in (1, 2, 3):
        step = Markov(chain)
        [[best]] = BeamSearch(size)(step, step.start(), Limits(BOS, EOS, (PAD, BOS), torch.tensor([9])))
        assert best.tokens == [A, B, EOS]
        assert best.log_prob == pytest.approx(math.log(0.9 * 0.94 * 0.95))


def test_it_stops_when_nothing_open_can_win() -> None:
    chain = matrix({BOS: {A: 0.99, B: 0.01}, A: {EOS: 0.99, A: 0.01}, B: {B: 0.5, EOS: 0.5}})
    step = Markov(chain)
    BeamSearch(5, length_penalty=0.0)(step, step.start(), limits([100]))
    assert step.calls == 2


def test_sampling_draws_from_the_distribution_and_repeats_with_its_seed() -> None:
    chain = matrix({BOS: {A: 0.7, B: 0.3}, A: {EOS: 1.0}, B: {EOS: 1.0}})

    def draws(seed: int) -> list[int]:
        step = Markov(chain)
        found = SamplingSearch(nbest=400, seed=seed)(step, step.start(), limits([3]))
        return [hypothesis.tokens[0] for hypothesis in found[0]]

    assert draws(1) == draws(1)
    share = draws(2).count(A) / 400
    assert abs(share - 0.7) < 4 * math.sqrt(0.7 * 0.3 / 400)


@given(st.integers(0, 10_000), st.permutations(range(4)), st.integers(0, 3))
def test_samples_of_a_sentence_depend_on_it_alone(seed: int, order: list[int], top_k: int) -> None:
    chains, lengths = random_matrices(seed, 4)[[0, 1, 2, 0]], [5, 3, 4, 5]
    sources = [[7], [8], [9, 9], [7]]
    search = SamplingSearch(top_k=top_k, nbest=3, seed=seed)

    def drawn(rows: list[int]) -> list[list[list[int]]]:
        step = Markov(chains[rows])
        given = limits([lengths[row] for row in rows])._replace(sources=[sources[row] for row in rows])
        return [[each.tokens for each in nbest] for nbest in search(step, step.start(), given)]

    alone = [drawn([row])[0] for row in range(4)]
    assert alone[0] == alone[3]
    assert drawn(order) == [alone[row] for row in order]


def test_top_k_keeps_the_most_probable() -> None:
    step = Markov(GARDEN_PATH)
    found = SamplingSearch(top_k=1, nbest=20)(step, step.start(), limits([4]))
    assert {tuple(hypothesis.tokens) for hypothesis in found[0]} == {(A, A, A, EOS)}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"beam_size": 0}, "search.beam_size"),
        ({"beam_size": 3, "nbest": 4}, "search.beam_size=4"),
        ({"length_penalty": -1.0}, "search.length_penalty"),
    ],
)
def test_impossible_settings_are_named(settings: dict[str, int], named: str) -> None:
    with pytest.raises(UserError, match=named):
        checked(BeamSearch, settings, "search")()
