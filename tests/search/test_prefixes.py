"""Prefixes: every search keeps to them, and finds what there is within them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.search import BeamSearch, GreedySearch, Limits, Prefix, SamplingSearch, Search
from tests.search.test_search import BOS, EOS, PAD, A, B, Markov, check_weights, every_hypothesis, random_matrices

# Two ways into the same prefix: by A and B, or by token 1 alone; then the sentence is free.
FORKED: Prefix = [{A: 1, 1: 2}, {B: 2}]
PREFIXES: list[Prefix] = [(), [{B: 1}], FORKED, [{A: 1}, {A: 2}, {B: 3}]]
SEARCHES = [GreedySearch(), BeamSearch(1), BeamSearch(3, nbest=3), BeamSearch(40, nbest=2), SamplingSearch(nbest=3)]


def keeps_to(tokens: list[int], prefix: Prefix) -> bool:
    """Whether the tokens are a way through the prefix and on."""
    state = 0
    for token in tokens:
        if state >= len(prefix):
            return True
        if token not in prefix[state]:
            return False
        state = prefix[state][token]
    return state >= len(prefix)


def limits(lengths: list[int], prefixes: list[Prefix]) -> Limits:
    return Limits(BOS, EOS, (PAD, BOS), torch.tensor(lengths), None, prefixes=prefixes)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@given(st.integers(0, 10_000), st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=5))
def test_every_hypothesis_keeps_to_its_prefix(search: Search, seed: int, prefixes: list[Prefix]) -> None:
    chains = random_matrices(seed, len(prefixes))
    step = Markov(chains)
    found = search(step, step.start(), limits([7] * len(prefixes), prefixes))
    for sentence, (nbest, prefix) in enumerate(zip(found, prefixes, strict=True)):
        assert nbest
        for hypothesis in nbest:
            assert keeps_to(hypothesis.tokens, prefix)
            pairs = zip([BOS, *hypothesis.tokens], hypothesis.tokens, strict=False)
            log_prob = sum(math.log(chains[sentence, before, after]) for before, after in pairs)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4), "the model's, of forced tokens too"
            check_weights(hypothesis, sentence)


@given(st.integers(0, 10_000), st.sampled_from(PREFIXES), st.sampled_from([0.0, 1.0]))
def test_a_beam_that_keeps_everything_finds_the_best_within_the_prefix(seed: int, prefix: Prefix, alpha: float) -> None:
    chains = random_matrices(seed, 2)
    step = Markov(chains)
    found = BeamSearch(40, length_penalty=alpha)(step, step.start(), limits([4, 4], [prefix, ()]))
    for sentence, own in enumerate((prefix, ())):
        best = max(
            (log_prob / ((5 + len(tokens)) / 6) ** alpha, tokens)
            for tokens, log_prob in every_hypothesis(chains[sentence], 4)
            if keeps_to(list(tokens), own)
        )
        assert tuple(found[sentence][0].tokens) == best[1]
        assert found[sentence][0].score == pytest.approx(best[0], abs=1e-5)
