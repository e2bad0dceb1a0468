"""The translator as a value: what is asked for when it is made, and what it leaves alone."""

import cProfile
from unittest import mock

import pytest

from nmt.model import Seq2Seq
from nmt.search import BeamSearch, GreedySearch, Hypothesis, Search
from nmt.text.tokenizer import EOS
from nmt.translation.translator import Translator
from tests.catalogue import model
from tests.test_configs import tokenizer

SENTENCES = ["eins zwei drei", "rot", "vier"]
#: Functions that are called for a line, by Python and by C; 229 before spans had their fast path (docs/benchmarks.md).
CALLS_OF_LINE = 125


def small(*overrides: str) -> Seq2Seq:
    size = tokenizer("unigram").source.size
    return model(*overrides, pieces=(size, size), joint=True).float()


@pytest.mark.parametrize(
    "search", [GreedySearch(), BeamSearch(3), BeamSearch(3, coverage_penalty=0.5)], ids=["greedy", "beam", "coverage"]
)
def test_weights_are_there_only_if_asked_for_and_change_nothing(search: Search) -> None:
    made, words = small("attention/score=scaled_dot"), tokenizer("unigram")
    asked, plain = (Translator([made], words, search, weights=weights) for weights in (True, False))
    assert asked.stepper.weights
    assert plain.stepper.weights == search.needs_weights
    for [one, *_], [other, *_] in zip(asked.translate(SENTENCES), plain.translate(SENTENCES), strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.weights is not None
        assert other.weights is None


def test_models_are_put_back_into_the_mode_that_they_were_in() -> None:
    made = small().train()
    list(Translator([made], tokenizer("unigram"), GreedySearch()).translate(SENTENCES))
    assert made.training


def calls_of(lines: int) -> int:
    """How many functions are called for lines whose search takes none."""
    words, profile = tokenizer("unigram"), cProfile.Profile()
    made = Translator([small()], words, GreedySearch(), weights=False)
    found = [[Hypothesis([*words.target.encode([SENTENCES[0]])[0], EOS], -1.0, -1.0, None)]]
    with mock.patch.object(Translator, "search_batch", lambda self, parts, watch: found * len(parts)):
        profile.runcall(made.translate_chunk, [SENTENCES[0]] * lines)
    return sum(entry.callcount for entry in profile.getstats())


def test_a_line_costs_few_calls_beside_its_search() -> None:
    assert (calls_of(60) - calls_of(20)) / 40 <= CALLS_OF_LINE
