"""The translator as a value: what is asked for when it is made, and what it leaves alone."""

import pytest

from nmt.model import Seq2Seq
from nmt.search import BeamSearch, GreedySearch, Search
from nmt.translation.translator import Translator
from tests.catalogue import model
from tests.test_configs import tokenizer

SENTENCES = ["eins zwei drei", "rot", "vier"]


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
