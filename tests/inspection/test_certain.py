"""What is certain of a translation during the search: chains whose searches are followed step by step."""

from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, tensor

from nmt.inspection.search_tree import BeamRecord
from nmt.search import BeamSearch, GreedySearch, Limits
from nmt.text.tokenizer import BOS, EOS
from tests.search.test_search import Markov, V, matrix, random_matrices

#: Pieces that each open hypothesis has, and those that are certain.
Told = list[tuple[int, list[int]]]
A, B, *OTHERS = {*range(V)} - {BOS, EOS}


def limits(longest: int) -> Limits:
    return Limits(BOS, EOS, (BOS, *OTHERS), tensor([longest]))


def followed(search: BeamSearch, chain: Tensor, longest: int, *, scored: bool) -> tuple[list[int], Told]:
    """The best hypothesis, and what was told before steps after the first."""
    told: Told = []
    record = BeamRecord(
        search.beam_size,
        lambda certain: told.append((max(node.step for node in record.nodes) + 1, certain)),
        search.score_of if scored else None,
    )
    step = Markov(chain)
    ((best, *_),) = search(*record.watch(step, step.start()), limits(longest))
    return best.tokens, told


@example(280, 4, 4, 0.6)
@example(5659, 2, 6, 0.0)  # 0 1 0 0 and 0 0 1 0 are equally probable
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 8), st.sampled_from([0.0, 0.6, 2.0]))
def test_the_best_hypothesis_begins_with_what_is_certain(seed: int, size: int, longest: int, alpha: float) -> None:
    """Always, if every finished hypothesis counts; and as long as the best one is open, if only one that leads does."""
    search, chain = BeamSearch(size, length_penalty=alpha), random_matrices(seed, 1)
    best, careful = followed(search, chain, longest, scored=False)
    assert all(best[: len(certain)] == certain for _, certain in careful)
    same, told = followed(search, chain, longest, scored=True)
    assert same == best
    for (count, less), (_, certain) in zip(careful, told, strict=True):
        assert certain[: len(less)] == less
        if len(best) > count:
            assert best[: len(certain)] == certain


def test_a_greedy_search_is_certain_of_every_token() -> None:
    told: list[list[int]] = []
    record = BeamRecord(1, told.append, lambda log_prob, length: log_prob)
    step = Markov(matrix({BOS: {A: 1.0}, A: {B: 1.0}, B: {EOS: 1.0}}))
    ((best,),) = GreedySearch()(*record.watch(step, step.start()), limits(5))
    assert told == [[A], [A, B]]
    assert best.tokens == [A, B, EOS]


def test_only_a_finished_hypothesis_that_leads_keeps_the_end_open() -> None:
    """A alone is finished; A B goes on, and is less probable in one chain, more probable in the other."""
    for end, expected, certain in ((0.55, [A, EOS], [[A], [A]]), (0.45, [A, B, EOS], [[A], [A, B]])):
        chain = matrix({BOS: {A: 1.0}, A: {EOS: end, B: 1 - end}, B: {EOS: 1.0}})
        best, told = followed(BeamSearch(2, length_penalty=0.0), chain, 4, scored=True)
        assert best == expected
        found = [tokens for _, tokens in told]
        assert found == certain[: len(found)]
        assert end > 0.5 or found == certain
