"""Sampling from the k most probable words, by hand."""

import math

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
