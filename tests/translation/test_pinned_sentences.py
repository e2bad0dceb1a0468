"""Pins of each sentence of a batch: in search, each sentence gets what it gets alone, for every family."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.attention import Pin, Pins
from nmt.model import Seq2Seq
from nmt.search import BeamSearch, GreedySearch, Search
from nmt.system.errors import UserError
from nmt.translation.kept_words import keep_words
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from tests.catalogue import ATTENTIVE, WITH_ATTENTION, model, thinned
from tests.test_configs import tokenizer

#: Of several lengths; with these limits they leave the batch one after the other, the first one first.
SENTENCES = ["rot", "eins zwei drei", "vier", "zwei drei rot gelb", "gelb"]
LENGTHS = [2, 7, 4, 9, 6]
PINS: list[Pins] = [{0: [0]}, {}, {3: [1]}, {0: [2, 3], 1: [1], 5: [0], 7: [4, 5]}, {2: [], 5: [1]}]
CONTEXTS = [["eins zwei"], [], ["rot", "vier gelb"], ["drei"], ["gelb vier zwei"]]
SEARCHES = [GreedySearch(), BeamSearch(4, nbest=2)]

FAMILIES = [
    *((f"decoder={decoder}",) for decoder in ATTENTIVE),
    *((f"decoder={wiring}", "decoder.multi_step=true", "decoder.layers=2") for wiring in WITH_ATTENTION),
    *((f"decoder={decoder}", "attention/score=scaled_dot", "attention.heads=2") for decoder in ATTENTIVE),
    ("decoder=luong", "decoder.input_feeding=false"),
    ("decoder=conditional", "attention/window=local_p", "attention.window.radius=1"),
    ("decoder=bahdanau", "attention.coverage=true"),
    ("decoder=luong", "attention/read=hard", "attention.read.objective=enumerate"),
]


def made(*overrides: str) -> Seq2Seq:
    size = tokenizer("unigram").source.size
    return model(*overrides, pieces=(size, size), joint=True)


def translator(models: Sequence[Seq2Seq], search: Search, weights: bool = True) -> Translator:
    return Translator(models, tokenizer("unigram"), search, weights=weights, extra_length=9)


def translated(
    by: Translator,
    pins: Sequence[Pins],
    rows: Sequence[int] = range(len(SENTENCES)),
    contexts: Sequence[Sequence[str]] = CONTEXTS,
) -> list[list[Translation]]:
    return by.translate_chunk([Request(SENTENCES[row], "", contexts[row], pins[row], LENGTHS[row]) for row in rows])


def check_as_alone(together: list[list[Translation]], by: Translator, pins: Sequence[Pins] = PINS) -> None:
    """Each sentence as in a batch of its own, and every pinned step with all its weight where the pin is."""
    for row, ranked in enumerate(together):
        (alone,) = translated(by, pins, [row])
        assert [each.pieces for each in ranked] == [each.pieces for each in alone]
        assert [each.score for each in ranked] == pytest.approx([each.score for each in alone], abs=1e-4)
        for each, other in zip(ranked, alone, strict=True):
            if not by.weights:
                assert each.weights is None
                continue
            assert each.weights is not None
            assert other.weights is not None
            np.testing.assert_allclose(each.weights, other.weights, atol=1e-5)
            seen = [each.weights, *([] if each.context_weights is None else [each.context_weights])]
            for step, slots in pins[row].items():
                assert not isinstance(slots, Pin)
                if step < len(each.pieces):
                    row_weights = np.concatenate(seen, 2)[:, step]
                    elsewhere = ~np.isin(np.arange(row_weights.shape[1]), list(slots))
                    assert not row_weights[:, elsewhere].any()


@pytest.mark.parametrize("search", SEARCHES, ids=["greedy", "beam"])
@pytest.mark.parametrize("overrides", thinned(FAMILIES, 2), ids=" ".join)
def test_each_sentence_of_a_batch_has_its_own_pins(overrides: tuple[str, ...], search: Search) -> None:
    for weights in (True, False):
        by = translator([made(*overrides)], search, weights)
        together = translated(by, PINS)
        check_as_alone(together, by)
    free = translated(by, [{}] * len(PINS))
    assert free[1][0].pieces == together[1][0].pieces
    assert [ranked[0].score for ranked in free] != pytest.approx([ranked[0].score for ranked in together], abs=1e-3)


@pytest.mark.parametrize("search", SEARCHES, ids=["greedy", "beam"])
def test_an_ensemble_pins_all_of_its_models(search: Search) -> None:
    by = translator([made("decoder=luong"), made("decoder=transformer"), made("decoder=conv")], search)
    check_as_alone(translated(by, PINS), by)


@pytest.mark.parametrize("decoder", thinned(ATTENTIVE, 3))
def test_pins_reach_the_sentences_before(decoder: str) -> None:
    """Whose pieces follow those of the sentence, however long the others of the batch are."""
    by = translator([made(f"decoder={decoder}", "context=segments", "context.sentences=2")], BeamSearch(3))
    vocabulary = by.tokenizer.source
    own = [len(tokens) + 1 for tokens in vocabulary.encode(SENTENCES)]
    pins: list[Pins] = [{1: [own[0] + 1]}, {}, {0: [own[2]], 2: [own[2] + 3]}, {2: [0, own[3]]}, {0: [own[4] + 4]}]
    together = translated(by, pins)
    check_as_alone(together, by, pins)
    first, third = together[0][0], together[2][0]
    assert first.context_weights is not None
    assert third.context_weights is not None
    assert np.isclose(first.context_weights[:, 1, 1], 1).all()
    assert np.isclose(third.context_weights[:, 2, 3], 1).all()


@given(pins=st.lists(
    st.dictionaries(st.integers(0, 10), st.lists(st.integers(0, 7), max_size=3), max_size=4), min_size=5, max_size=5
))  # fmt: skip
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_any_pins_give_each_sentence_what_it_gets_alone(pins: list[Pins]) -> None:
    by = translator([made("decoder=luong")], BeamSearch(3))
    check_as_alone(translated(by, pins), by, pins)


@pytest.mark.parametrize("decoder", thinned(ATTENTIVE, 3))
def test_slots_are_the_same_pins_for_every_sentence(decoder: str) -> None:
    """In search, forced decoding, saliency and looks; the model that was handed over still looks where it likes."""
    one = made(f"decoder={decoder}")
    pinned = Translator([one], tokenizer("unigram"), BeamSearch(3), slots=[1, None, [0, 2]])
    free = Translator([one], tokenizer("unigram"), BeamSearch(3))
    pins: Pins = {0: [1], 2: [0, 2]}
    ranked = free.translate_chunk([Request(sentence, pins=pins) for sentence in SENTENCES])
    for [best], [expected] in zip(pinned.translate_chunk(SENTENCES), ranked, strict=True):
        assert best.pieces == expected.pieces
        assert best.pins == expected.pins == pins
    texts = [best.text for [best] in ranked]
    (views, *_), forced = pinned.look([best for [best] in ranked]), pinned.force(SENTENCES, texts)
    assert views is not None
    assert views.cross is not None
    for weights in (views.cross.weights, forced[0].weights):
        assert weights is not None
        assert np.isclose(weights[:, 0, 1], 1).all()
    likely = [each.log_prob for each in forced]
    assert likely != pytest.approx([each.log_prob for each in free.force(SENTENCES, texts)], abs=1e-3)
    assert likely == pytest.approx([each.log_prob for each in pinned.saliency(SENTENCES, texts)], abs=1e-4)


@pytest.mark.parametrize("search", SEARCHES, ids=["greedy", "beam"])
def test_the_words_before_the_first_pin_are_those_without_pins(search: Search) -> None:
    by = translator([made("decoder=bahdanau")], search)
    pins: list[Pins] = [{2: [1]}, {0: [1], 3: [0]}, {}, {1: [0], 2: [2]}, {99: [0]}]
    asked = [Request(sentence, pins=each) for sentence, each in zip(SENTENCES, pins, strict=True)]
    asked.append(Request(SENTENCES[0], "two", pins={1: [0]}))
    kept = keep_words(by, asked)
    free = by.translate_chunk([request._replace(pins={}) for request in asked])
    for request, before, (best, *_), (usual, *_) in zip(asked, kept, by.translate_chunk(kept), free, strict=True):
        first = min(request.pins or {}, default=0)
        if 0 < first < len(usual.pieces) and not request.prefix:
            assert best.pieces[:first] == usual.pieces[:first]
            assert len(before.begins) == first
        else:
            assert before == request
        for step, slots in (request.pins or {}).items():
            assert best.weights is not None
            if step < len(best.pieces):
                looked = np.isin(np.arange(best.weights.shape[2]), slots)
                assert best.weights[:, step, looked].sum() == pytest.approx(1, abs=1e-5)
    assert keep_words(by, [Request(" ", pins={3: [0]})]) == [Request(" ", pins={3: [0]})]


def test_pins_need_an_attention() -> None:
    for models in ([made("decoder=none")], [made(), made("decoder=none")]):
        with pytest.raises(UserError, match="slots= restricts the attention"):
            Translator(models, tokenizer("unigram"), GreedySearch(), slots=[1])
        with pytest.raises(UserError, match="slots= restricts the attention"):
            translated(translator(models, GreedySearch()), PINS)
