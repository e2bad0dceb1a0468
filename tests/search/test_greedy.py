"""Sampling by hand: from the k most probable words, and at a temperature."""

import math

import pytest

from nmt.search import SamplingSearch
from tests.search.test_search import BOS, EOS, A, B, Markov, limits, matrix


def test_top_k_draws_from_the_k_most_probable_in_their_proportion() -> None:
    chain = matrix({BOS: {A: 0.5, B: 0.3, EOS: 0.2}, A: {EOS: 1.0}, B: {EOS: 1.0}})
    shares = {1: [1.0, 0.0, 0.0], 2: [0.5 / 0.8, 0.3 / 0.8, 0.0], 3: [0.5, 0.3, 0.2], 9: [0.5, 0.3, 0.2]}
    for top_k, expected in shares.items():
        step = Markov(chain)
        [draws] = SamplingSearch(top_k=top_k, nbest=400)(step, step.start(), limits([3]))
        first = [hypothesis.tokens[0] for hypothesis in draws]
        for word, share in zip((A, B, EOS), expected, strict=True):
            assert abs(first.count(word) / 400 - share) <= 4 * math.sqrt(share * (1 - share) / 400)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_temperature_below_one_sharpens(temperature: float) -> None:
    """p^(1 / temperature), normalised: at one half 0.8 and 0.2 become 16/17 and 1/17."""
    chain = matrix({BOS: {A: 0.8, B: 0.2}, A: {EOS: 1.0}, B: {EOS: 1.0}})
    step = Markov(chain)
    [draws] = SamplingSearch(temperature=temperature, nbest=400)(step, step.start(), limits([3]))
    share = 0.8 ** (1 / temperature) / (0.8 ** (1 / temperature) + 0.2 ** (1 / temperature))
    drawn = sum(hypothesis.tokens[0] == A for hypothesis in draws) / 400
    assert abs(drawn - share) <= 4 * math.sqrt(share * (1 - share) / 400)


def test_draws_come_best_first() -> None:
    step = Markov(matrix({BOS: {A: 0.6, B: 0.4}, A: {EOS: 1.0}, B: {EOS: 1.0}}))
    [draws] = SamplingSearch(nbest=20)(step, step.start(), limits([3]))
    first = [hypothesis.tokens[0] for hypothesis in draws]
    assert first == [A] * first.count(A) + [B] * first.count(B)
    assert 0 < first.count(B) < 20
