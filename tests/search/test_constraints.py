"""Constraints: every hypothesis meets them once, and a wide beam finds the best that does, as exhaustive search."""

import math
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.search import BeamSearch, Constraint, Edges, GreedySearch, Limits
from nmt.system.errors import UserError
from tests.search.test_beam import Looking
from tests.search.test_search import BOS, EOS, PAD, Markov

A, B, C, D = 3, 4, 5, 6
V = 7
ONE = [Constraint([[A]])]
PAIR = [Constraint([[A, B]])]
FORMS = [Constraint([[A, A], [B]])]
TWO = [Constraint([[C]]), Constraint([[A, B], [D]])]
TWICE = [Constraint([[C]]), Constraint([[C]])]
LONG = [Constraint([[A], [B, C, D]])]
SETS = [[], ONE, PAIR, FORMS, TWO, TWICE, LONG]


def random_chains(seed: int, count: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(count, V, V, generator=generator), -1)


def limits(lengths: list[int], constraints: list[list[Constraint]], edges: Edges | None = None) -> Limits:
    return Limits(BOS, EOS, (PAD, BOS), torch.tensor(lengths), constraints=constraints, edges=edges)


def count(tokens: list[int], constraint: Constraint) -> int:
    """How often a constraint is met, from left to right."""
    at = found = 0
    while at < len(tokens):
        fits = [each for each in constraint.alternatives if tokens[at : at + len(each)] == list(each)]
        found += bool(fits)
        at += max(map(len, fits), default=1)
    return found


def pairs(tokens: list[int]) -> list[tuple[int, int]]:
    """Each token with the one before it, sorted."""
    return sorted(pairwise([BOS, *tokens]))


def meets(tokens: list[int], constraints: list[Constraint]) -> bool:
    """Whether each constraint is met as often as it is there."""
    return all(count(tokens, each) == constraints.count(each) for each in constraints)


@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from(SETS), st.integers(4, 8)), min_size=1, max_size=4),
)
def test_every_hypothesis_meets_its_constraints_once(
    seed: int, size: int, sentences: list[tuple[list[Constraint], int]]
) -> None:
    chains, step = random_chains(seed, len(sentences)), Markov(random_chains(seed, len(sentences)))
    told = limits([longest for _, longest in sentences], [constraints for constraints, _ in sentences])
    found = BeamSearch(size, nbest=size)(step, step.start(), told)
    for row, ((constraints, longest), nbest) in enumerate(zip(sentences, found, strict=True)):
        assert nbest
        for hypothesis in nbest:
            assert meets(hypothesis.tokens, constraints)
            assert len(hypothesis.tokens) <= longest
            log_prob = sum(math.log(chains[row, before, after]) for before, after in pairs(hypothesis.tokens))
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)


@given(st.integers(0, 10_000), st.sampled_from(SETS), st.sampled_from([0.0, 1.0]))
def test_a_beam_that_keeps_everything_finds_the_best(seed: int, constraints: list[Constraint], alpha: float) -> None:
    """Of the hypotheses that do not end early: one whose best next token is the end says only what is missing."""
    chains = random_chains(seed, 1)
    chains[:, :, EOS] *= 1e-3
    step, longest = Markov(chains), 4
    [nbest] = BeamSearch(200, length_penalty=alpha)(step, step.start(), limits([longest], [constraints]))

    def score(tokens: tuple[int, ...]) -> float:
        log_prob = sum(math.log(chains[0, a, b]) for a, b in pairs([*tokens]))
        return float(log_prob / ((5 + len(tokens)) / 6) ** alpha)

    texts = [words for n in range(longest) for words in product((A, B, C, D), repeat=n)]
    best = max(((*words, EOS) for words in texts if meets([*words], constraints)), key=score)
    assert tuple(nbest[0].tokens) == best
    assert nbest[0].score == pytest.approx(score(best), abs=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_sentences_without_constraints_are_searched_as_before(seed: int, size: int) -> None:
    chains = random_chains(seed, 3)
    plain, mixed = Markov(chains), Markov(chains)
    expected = BeamSearch(size, nbest=size)(plain, plain.start(), limits([6, 7, 5], []))
    found = BeamSearch(size, nbest=size)(mixed, mixed.start(), limits([6, 7, 5], [[], PAIR, []]))
    for row in (0, 2):
        assert pairs(found[row][0].tokens) == pairs(expected[row][0].tokens)  # several orders of them are as likely
        assert [each.score for each in found[row]] == pytest.approx([each.score for each in expected[row]], abs=1e-6)


def test_a_word_begins_and_ends_at_an_edge() -> None:
    """A begins a word and B goes on with it: "A B" is not the word "A"."""
    edges = Edges([True, True, True, True, False, True, True], [False] * V)
    chains = torch.full((1, V, V), 0.01)
    chains[0, BOS, A] = chains[0, A, B] = chains[0, B, C] = chains[0, C, EOS] = 0.9
    step = Markov(chains)
    [[free]] = BeamSearch()(step, step.start(), limits([8], [[]], edges))
    assert free.tokens == [A, B, C, EOS]
    [[part]] = BeamSearch()(step, step.start(), limits([8], [[Constraint([[A]], whole=False)]], edges))
    assert part.tokens == [A, B, C, EOS]
    [[word]] = BeamSearch()(step, step.start(), limits([8], [[Constraint([[A]])]], edges))
    assert any(pair in ((A, C), (A, D), (A, EOS), (A, A)) for pair in zip(word.tokens, word.tokens[1:], strict=False))


def test_a_shorter_way_to_write_a_word_is_for_edges_only() -> None:
    """D alone is C after an edge of words, which there is none: "A B" is said."""
    edges = Edges([True, True, True, True, False, True, False], [False] * V)
    chains = torch.full((1, V, V), 0.01)
    chains[0, BOS, C] = chains[0, C, EOS] = 0.9
    step = Markov(chains)
    [[best]] = BeamSearch()(step, step.start(), limits([8], [[Constraint([[A, B], [D]])]], edges))
    assert (A, B) in zip(best.tokens, best.tokens[1:], strict=False)


def test_a_constraint_begins_where_a_step_looks_at_its_words() -> None:
    """All words are equally likely, and the third step looks at slot 1: C is said there, and not again."""
    chains = torch.zeros(1, V, V)
    for before, after in ((BOS, A), (A, B), (B, D), (D, EOS), (C, D)):
        chains[0, before] = torch.tensor([0, 0, 0.01, 0.01, 0.01, 0.1, 0.01])
        chains[0, before, after] = 0.86
    tables = torch.zeros(1, V, 1, 2)
    tables[0, :, 0, 0] = 1.0
    tables[0, B, 0] = torch.tensor([0.2, 0.8])
    step = Looking(chains, tables)
    told = limits([9], [[Constraint([[C]], [1])]])._replace(slots=torch.ones(1, 2, dtype=torch.bool))
    [[best]] = BeamSearch(2)(step, step.start(), told)
    assert best.tokens == [A, B, C, D, EOS]


def test_an_improbable_constraint_waits_for_a_step_that_looks_at_its_words() -> None:
    """C is nowhere among the best words; it is likelier at the first step than at the third, which looks at slot 1."""
    chains = torch.zeros(1, V, V)
    for before, after in ((BOS, A), (A, B), (B, D), (D, EOS), (C, D)):
        chains[0, before, EOS:] = torch.tensor([0.03, 0.03, 0.03, 0.001 if before == B else 0.01, 0.03])
        chains[0, before, after] = 0.86
    assert looking(chains, {B: 0.8}, size=1) == [A, B, C, D, EOS]


def test_a_step_that_looks_at_a_word_that_is_said_loses_rank() -> None:
    """After C, A looks at slot 1 again and D does not: D ranks first, though A is likelier."""
    chains = torch.full((1, V, V), 1e-6)
    chains[0, BOS, C] = chains[0, A, EOS] = chains[0, D, EOS] = 1.0
    chains[0, C, A], chains[0, C, D] = 0.6, 0.4
    tables = torch.zeros(1, V, 1, 2)
    tables[0, :, 0, 0] = 1.0
    tables[0, BOS, 0] = tables[0, A, 0] = torch.tensor([0.1, 0.9])
    step = Looking(chains, tables)
    told = limits([9], [[Constraint([[C]], [1])]])._replace(slots=torch.ones(1, 2, dtype=torch.bool))
    [[best, second]] = BeamSearch(4, length_penalty=0.0, nbest=2)(step, step.start(), told)
    assert best.tokens == [C, D, EOS]
    assert second.tokens == [C, A, EOS]
    assert second.score == pytest.approx(math.log(0.6) - 3 * 0.9, abs=1e-3)
    assert second.log_prob == pytest.approx(math.log(0.6), abs=1e-3)


def looking(chains: Tensor, tables: dict[int, float], size: int = 4) -> list[int]:
    """The best tokens that say C, of slot 1; `tables` has the weight on slot 1 after a token."""
    weights = torch.zeros(1, V, 1, 2)
    weights[0, :, 0, 0] = 1.0
    for token, weight in tables.items():
        weights[0, token, 0] = torch.tensor([1 - weight, weight])
    step = Looking(chains, weights)
    told = limits([9], [[Constraint([[C]], [1])]])._replace(slots=torch.ones(1, 2, dtype=torch.bool))
    [[best]] = BeamSearch(size, length_penalty=0.0)(step, step.start(), told)
    return best.tokens


def test_what_a_constraint_has_replaced_is_not_said_after_it() -> None:
    """A was the model's own word for slot 1, where the step after C still looks: B comes."""
    chains = torch.full((1, V, V), 1e-6)
    chains[0, BOS, A], chains[0, BOS, C] = 0.9, 0.04
    chains[0, C, A], chains[0, C, B] = 0.9, 0.04
    chains[0, A, EOS] = chains[0, B, EOS] = 1.0
    assert looking(chains, {BOS: 0.9, C: 0.9}) == [C, B, EOS]
    assert looking(chains, {BOS: 0.9}) == [C, A, EOS]


def test_a_constraint_is_late_after_its_words_are_translated() -> None:
    """C after A is ten times as likely as C at once, but A has translated slot 1."""
    chains = torch.full((1, V, V), 1e-6)
    chains[0, BOS, A], chains[0, BOS, C] = 0.9, 0.001
    chains[0, A, EOS], chains[0, A, C] = 0.9, 0.01
    chains[0, C, EOS] = 1.0
    assert looking(chains, {BOS: 0.9}) == [C, EOS]
    assert looking(chains, {}) == [A, C, EOS]


def test_constraints_need_a_beam() -> None:
    step = Markov(random_chains(1, 1))
    with pytest.raises(UserError, match="search=beam"):
        GreedySearch()(step, step.start(), limits([5], [ONE]))
