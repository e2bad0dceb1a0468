"""A search for different texts goes on with the best hypothesis of each text."""

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.search import BeamSearch, Limits
from tests.search.test_search import BOS, EOS, PAD, Markov

#: Two letters, and a token that shows both.
A, B, AB = 4, 5, 6
SHOWS = [b"", b"", b"", b"", b"a", b"b", b"ab"]
LONGEST = 4


@given(
    st.lists(st.lists(st.floats(0.05, 1), min_size=4, max_size=4), min_size=1, max_size=3), st.sampled_from([0.0, 1.0])
)
def test_the_best_texts_are_those_of_exhaustive_search(drawn: list[list[float]], penalty: float) -> None:
    """Where the next token does not depend on those before, merging loses nothing without a length penalty."""
    rows = [[value / sum(row) for value in row] for row in drawn]
    matrices = torch.full((len(rows), 7, 7), 1e-30)
    matrices[:, :, [EOS, A, B, AB]] = torch.tensor(rows).unsqueeze(1)
    step, lengths = Markov(matrices), torch.tensor([LONGEST] * len(rows))
    search = BeamSearch(beam_size=30, length_penalty=penalty, nbest=5)
    found = search(step, step.start(), Limits(BOS, EOS, (PAD, 1, BOS), lengths, shows=SHOWS))
    for row, hypotheses in zip(rows, found, strict=True):
        probabilities = dict(zip((EOS, A, B, AB), row, strict=True))
        expected: dict[bytes, float] = {}
        for count in range(LONGEST):
            for tokens in itertools.product((A, B, AB), repeat=count):
                score = search.score_of(
                    math.log(math.prod(probabilities[token] for token in (*tokens, EOS))), count + 1
                )
                text = b"".join(SHOWS[token] for token in tokens)
                expected[text] = max(score, expected.get(text, -math.inf))
        best: dict[bytes, float] = {}
        for each in hypotheses:
            best.setdefault(b"".join(SHOWS[token] for token in each.tokens), each.score)
        assert len(best) >= 5
        assert [*best.values()] == sorted(best.values(), reverse=True)
        assert all(score <= expected[text] + 1e-4 for text, score in best.items())
        if not penalty:
            scores = sorted(expected.values(), reverse=True)[:5]
            assert all(abs(one - other) < 1e-4 for one, other in zip(best.values(), scores, strict=False))
