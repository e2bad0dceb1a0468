"""What is certain of a translation during the search: chains whose searches are followed step by step."""

import math

from hypothesis import given
from hypothesis import strategies as st

from nmt.inspection.beam import BeamRecord
from nmt.search import BeamSearch, GreedySearch
from tests.search.test_search import BOS, EOS, A, B, Markov, limits, matrix, random_matrices


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 8), st.sampled_from([0.0, 0.6, 2.0]))
def test_the_best_hypothesis_begins_with_what_was_certain(seed: int, size: int, longest: int, alpha: float) -> None:
    """At every step, and what is certain never becomes shorter."""
    search = BeamSearch(size, length_penalty=alpha)
    told = list[list[int]]()
    record = BeamRecord(size, told.append, search.scored)
    step = Markov(random_matrices(seed, 1))
    ((best, *_),) = search(*record.watch(step, step.start()), limits([longest]))
    for certain in told:
        assert best.tokens[: len(certain)] == certain
    unscored = list[list[int]]()
    careful = BeamRecord(size, unscored.append)
    ((again, *_),) = search(*careful.watch(step, step.start()), limits([longest]))
    assert again.tokens == best.tokens
    assert all(best.tokens[: len(certain)] == certain for certain in unscored)
    assert all(len(one) <= len(two) for one, two in zip(unscored, told, strict=True))


def test_a_greedy_search_is_certain_of_every_token() -> None:
    told = list[list[int]]()
    record = BeamRecord(1, told.append, lambda log_prob, length: log_prob)
    step = Markov(matrix({BOS: {A: 1.0}, A: {B: 1.0}, B: {EOS: 1.0}}))
    ((best,),) = GreedySearch()(*record.watch(step, step.start()), limits([5]))
    assert told == [[A], [A, B]]
    assert best.tokens == [A, B, EOS]


def test_a_finished_hypothesis_that_leads_keeps_the_end_open() -> None:
    """A alone is finished with 0.45; A B goes on with 0.55, and nobody knows yet which one wins."""
    told = list[list[int]]()
    search = BeamSearch(2, length_penalty=0.0)
    record = BeamRecord(2, told.append, search.scored)
    step = Markov(matrix({BOS: {A: 1.0}, A: {EOS: 0.45, B: 0.55}, B: {A: 0.5, EOS: 0.5}}))
    ((best, *_),) = search(*record.watch(step, step.start()), limits([4]))
    assert best.tokens == [A, EOS]
    assert math.exp(best.log_prob) > 0.4
    assert told[-1] == [A]
