"""What-if and explanations: the difference is that of two translations, and numbers worked by hand."""

import functools
import itertools
import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch

from nmt.alignment.word_weights import word_weights
from nmt.attention import Pin
from nmt.inspection.details import DETAILS
from nmt.inspection.document import Style
from nmt.inspection.explanation import METHODS, agreement, correlated, explain, rank_correlation
from nmt.inspection.steps import inspect, tokens_of
from nmt.inspection.whatif import Edits, what_if, word_differences
from nmt.system.errors import UserError
from nmt.translation.kept_words import keep_words
from nmt.translation.request import Request
from tests.catalogue import DECODERS
from tests.inspection.small import SENTENCE, style, translator

NONE = ("decoder=none",)


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_edit_is_answered_by_a_difference(decoder: str) -> None:
    made = translator((f"decoder={decoder}",))
    answer = what_if(made, SENTENCE, Edits(text="rot vier"), style(made), frozenset())
    ((plain, *_),) = made.translate_chunk([SENTENCE])
    ((changed, *_),) = made.translate_chunk(["rot vier"])
    assert answer["baseline"]["hypotheses"][0]["text"] == plain.text
    assert answer["variant"]["hypotheses"][0]["text"] == changed.text
    assert len(answer["baseline"]["hypotheses"]) == 1
    steps = answer["differences"]["steps"]
    assert sum(step["baseline"] for step in steps) == pytest.approx(plain.log_prob, abs=2e-4)
    assert [step["step"] for step in steps] == list(range(len(plain.pieces)))
    assert all(step["kl"] >= 0 for step in steps)
    assert any(step["kl"] > 1e-4 for step in steps)


def test_no_edit_has_no_difference() -> None:
    made = translator(("decoder=luong",))
    answer = what_if(made, SENTENCE, Edits(), style(made), frozenset())
    assert answer["variant"] is answer["differences"] is answer["sweep"] is None
    same = what_if(made, SENTENCE, Edits(text=SENTENCE), style(made), frozenset())
    assert all(step["kl"] < 1e-6 for step in same["differences"]["steps"])
    assert {part["kind"] for part in same["differences"]["words"]} <= {"same"}


def test_the_changed_text_is_cut_as_the_translator_cuts_it() -> None:
    made = replace(translator(("decoder=luong",)), max_source_length=4, long_lines="truncate")
    same = what_if(made, "rot vier rot vier rot", Edits(text="rot vier rot vier rot"), style(made), frozenset())
    assert all(step["kl"] < 1e-6 for step in same["differences"]["steps"])
    with pytest.raises(UserError, match="the changed text is too long"):
        what_if(replace(made, long_lines="split"), "rot", Edits(text="rot vier " * 9), style(made), frozenset())


def test_steps_of_any_integer_are_swept() -> None:
    made, int64 = translator(("decoder=luong",)), cast("int", np.int64(1))
    one, other = (what_if(made, SENTENCE, Edits(), style(made), frozenset(), step) for step in (1, int64))
    assert one["sweep"] == other["sweep"]


def test_pins_and_prefixes_show_in_the_variant() -> None:
    made = translator(("decoder=bahdanau",))
    answer = what_if(made, SENTENCE, Edits(pins={1: [2]}), style(made), DETAILS)
    cross = answer["variant"]["hypotheses"][0]["weights"]["cross"]
    weights = np.array(cross["data"]).reshape(cross["shape"])
    assert weights[0, 1, 2] == 1
    assert weights[0, 0].max() < 1
    prefixed = what_if(made, SENTENCE, Edits(prefix="two"), style(made), frozenset())
    hypothesis = prefixed["variant"]["hypotheses"][0]
    assert hypothesis["text"].startswith("two")
    assert hypothesis["pieces"][0]["forced"]
    assert all(step["kl"] < 1e-6 for step in prefixed["differences"]["steps"])


def test_a_pinned_step_shows_its_pieces_in_place_of_its_window() -> None:
    made = translator(("decoder=luong", "attention/window=local_p", "attention.window.radius=1"))
    answer = what_if(made, SENTENCE, Edits(pins={1: [2]}), style(made), DETAILS)
    before, after = (answer[name]["hypotheses"][0]["stages"][0] for name in ("baseline", "variant"))
    visible, factor = (np.reshape(after[name], after["shape"])[0, 1] for name in ("visible", "factor"))
    assert visible.nonzero()[0].tolist() == [2]
    assert (factor == 1).all()
    assert before["centres"] is not None
    assert after["centres"] is None


@pytest.mark.parametrize("decoder", [decoder for decoder in DECODERS if decoder != "none"])
def test_the_words_before_a_pin_are_kept(decoder: str) -> None:
    made = translator((f"decoder={decoder}",), beam=1)
    ((plain, *_),) = made.translate_chunk([SENTENCE])
    for step in range(len(plain.pieces)):
        pins = {step: [2], step + 1: [0]}
        answer = what_if(made, SENTENCE, Edits(pins=pins), style(made), frozenset())
        pieces = answer["variant"]["hypotheses"][0]["pieces"]
        assert [piece["text"] for piece in pieces[:step]] == plain.pieces[:step]
        assert answer["kept"] == step
        assert pieces[step]["text"] == answer["differences"]["steps"][step]["best"], "the word that was pinned"
        free = what_if(made, SENTENCE, Edits(pins=pins, keep_words=False), style(made), frozenset())
        ((searched, *_),) = made.translate_chunk([Request(SENTENCE, pins=pins)])
        assert free["kept"] == 0
        assert [piece["text"] for piece in free["variant"]["hypotheses"][0]["pieces"]] == searched.pieces


def test_what_is_kept_before_a_pin() -> None:
    """A beginning of one's own takes its place; one of both translations is part of it."""
    made = translator(("decoder=luong",))
    ask = functools.partial(what_if, made, SENTENCE, style=style(made), include=frozenset())
    assert ask(edits=Edits(prefix="two", pins={2: [1]}))["kept"] == 0
    answer = ask(edits=Edits(pins={0: [1]}), prefix="one two")
    assert answer["variant"]["hypotheses"][0]["text"].startswith("one two")
    assert answer["kept"] == sum(piece["forced"] for piece in answer["baseline"]["hypotheses"][0]["pieces"]) > 1
    count = len(ask(edits=Edits())["baseline"]["hypotheses"][0]["pieces"])
    with pytest.raises(UserError, match=rf"no step {count}. Give 0 to {count - 1}, or keep_words=false"):
        ask(edits=Edits(pins={count: [0]}))
    assert ask(edits=Edits(pins={count: [0]}, keep_words=False))["variant"]


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer", "conv"])
def test_the_sweep_pins_the_step_to_every_source_piece(decoder: str) -> None:
    made = translator((f"decoder={decoder}",))
    answer = what_if(made, SENTENCE, Edits(), style(made), frozenset(), sweep=1)
    ((plain, *_),) = made.translate_chunk([SENTENCE])
    assert [bar["text"] for bar in answer["sweep"]] == plain.source_pieces
    assert len({bar["log_prob"] for bar in answer["sweep"]}) > 1
    source, target = tokens_of(made.tokenizer, plain)
    expected = inspect(made, source, target, pins={1: [2]}).of_pieces[1]
    assert answer["sweep"][2]["log_prob"] == pytest.approx(expected, abs=1e-5)
    assert all(bar["best_log_prob"] >= bar["log_prob"] for bar in answer["sweep"])
    edited = what_if(made, SENTENCE, Edits(pins={1: [2]}), style(made), frozenset())["differences"]["steps"][1]
    assert edited["best"] == answer["sweep"][2]["best"]
    assert edited["best_log_prob"] == pytest.approx(answer["sweep"][2]["best_log_prob"], abs=1e-5)
    with pytest.raises(UserError, match=r"sweep=99: the translation has no such step. Give 0 to \d+\."):
        what_if(made, SENTENCE, Edits(), style(made), frozenset(), sweep=99)


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer"])
def test_the_sweep_of_a_word_looks_at_whole_words(decoder: str) -> None:
    """Each row is what the pins of all steps to all pieces of the word give, of the first steps forced."""
    made = translator((f"decoder={decoder}",), beam=1)
    text = "drei rothaus vier"
    answer = what_if(made, text, Edits(), style(made), frozenset(), sweep=[1, 2])
    ((plain, *_),) = made.translate_chunk([text])
    assert [row["text"] for row in answer["sweep"]] == [*text.split(), "</s>"]
    pieces = [row["source"] for row in answer["sweep"]]
    assert [*itertools.chain(*pieces)] == [*range(len(plain.source_pieces))]
    assert max(map(len, pieces)) > 1
    for row in answer["sweep"]:
        pins = dict.fromkeys([1, 2], row["source"])
        steps = what_if(made, text, Edits(pins=pins), style(made), frozenset())["differences"]["steps"]
        assert row["log_prob"] == pytest.approx(steps[1]["variant"] + steps[2]["variant"], abs=1e-4)
        assert row["best_log_prob"] >= row["log_prob"] - 1e-4 or not row["same"]
        assert " " not in row["best"], "a word ends before the next one"
    same = [row for row in answer["sweep"] if row["same"]]
    assert all(row["log_prob"] == pytest.approx(row["best_log_prob"], abs=1e-4) for row in same)
    for sweep in ([0, 2], [2, 1], [], [1, 1]):
        with pytest.raises(UserError, match="give steps that follow one another"):
            what_if(made, text, Edits(), style(made), frozenset(), sweep=sweep)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "conditional", "transformer", "conv"])
def test_a_step_attends_at_another_temperature(decoder: str) -> None:
    """Its shares are the softmax of divided energies, at this step alone, and the model is as before afterwards."""
    made = translator((f"decoder={decoder}",))
    ((plain, *_),) = made.translate_chunk([SENTENCE])
    source, target = tokens_of(made.tokenizer, plain)
    usual = inspect(made, source, target)
    same = what_if(made, SENTENCE, Edits(), style(made), frozenset(), temperature=(1, 1.0))["temperature"]
    assert all(piece["before"] == pytest.approx(piece["after"], abs=1e-5) for piece in same["pieces"])
    cold = inspect(made, source, target, temperatures={1: 0.2}, stages=True)
    stages, warm = cold.layers[0].stages, inspect(made, source, target, stages=True).layers[0].stages
    assert torch.allclose(stages.shares[:, 1], torch.softmax(stages.energies[:, 1] / 0.2, -1), atol=1e-5)
    assert torch.allclose(stages.shares[:, 0], warm.shares[:, 0], atol=1e-6)
    answer = what_if(made, SENTENCE, Edits(), style(made), frozenset(), temperature=(1, 0.2))["temperature"]
    by_name = {piece["text"]: piece for piece in answer["pieces"]}
    assert by_name[plain.pieces[1]]["after"] == pytest.approx(cold.of_pieces[1], abs=1e-4)
    assert by_name[plain.pieces[1]]["before"] == pytest.approx(usual.of_pieces[1], abs=1e-4)
    assert inspect(made, source, target).of_pieces == pytest.approx(usual.of_pieces, abs=1e-6), "it is taken back"
    for step, value in ((99, 1.0), (-1, 1.0), (0, 0.0), (0, float("nan"))):
        with pytest.raises(UserError, match="temperature: "):
            what_if(made, SENTENCE, Edits(), style(made), frozenset(), temperature=(step, value))


def test_half_a_weight_is_pinned() -> None:
    made = translator(("decoder=bahdanau",))
    answer = what_if(made, SENTENCE, Edits(pins={1: Pin([2, 3], 0.5)}), style(made), DETAILS)
    cross = answer["variant"]["hypotheses"][0]["weights"]["cross"]
    weights = np.array(cross["data"]).reshape(cross["shape"])
    assert weights[0, 1, [2, 3]].sum() == pytest.approx(0.5, abs=1e-5)
    assert weights[0, 1].sum() == pytest.approx(1, abs=1e-4)
    assert weights[0, 1].min() > 0
    for weight in (-0.5, 2, float("nan")):
        with pytest.raises(UserError, match="must be a number from 0 to 1"):
            what_if(made, SENTENCE, Edits(pins={1: Pin([2], weight)}), style(made), frozenset())


def test_what_cannot_be_asked_is_refused() -> None:
    made = translator(NONE)
    for edits, sweep in ((Edits(pins={0: [0]}), None), (Edits(), 0)):
        with pytest.raises(UserError, match="has none"):
            what_if(made, SENTENCE, edits, style(made), frozenset(), sweep)
    with pytest.raises(UserError, match="text: must be one line with words"):
        what_if(made, " ", Edits(), style(made), frozenset())
    made = translator(("decoder=luong",))
    for pins, message in (
        ({0: [99]}, r"Give 0 to \d+\."),
        ({1: [-1]}, r"Give 0 to"),
        ({-1: [0]}, "Count steps from 0"),
    ):
        with pytest.raises(UserError, match=message):
            what_if(made, SENTENCE, Edits(pins=pins), style(made), frozenset())


def test_words_are_compared_in_ranges() -> None:
    differences = word_differences(["a", "red", "house"], ["a", "blue", "big", "house", "now"])
    assert [(each["kind"], each["baseline"], each["variant"]) for each in differences] == [
        ("same", [0, 1], [0, 1]),
        ("changed", [1, 2], [1, 3]),
        ("same", [2, 3], [3, 4]),
        ("inserted", [3, 3], [4, 5]),
    ]


@pytest.mark.parametrize("decoder", DECODERS)
def test_explanations_have_a_row_for_each_target_word(decoder: str) -> None:
    made = translator((f"decoder={decoder}",))
    answer = explain(made, SENTENCE, "one two three", Style(made.tokenizer.target))
    assert answer["words"] == {"source": SENTENCE.split(), "target": ["one", "two", "three"]}
    attends = decoder != "none"
    for method in METHODS:
        matrix = answer["methods"][method]
        if method == "attention" and not attends:
            assert matrix is None
            continue
        assert np.array(matrix).shape == (3, 3)
        assert np.isfinite(matrix).all()
    assert [each["methods"] for each in answer["correlation"]] == (
        [["attention", "gradient"], ["attention", "erasure"], ["gradient", "erasure"]]
        if attends
        else [["gradient", "erasure"]]
    )
    tops = [np.abs(np.array(matrix)).argmax(1) for matrix in answer["methods"].values() if matrix is not None]
    same = [len(set(of_word)) == 1 for of_word in zip(*tops, strict=True)]
    assert answer["strongest"] == {"same": same, "count": sum(same)}
    for each in answer["correlation"]:
        known = [value for value in each["by_word"] if value is not None]
        assert each["mean"] is None if not known else math.isclose(each["mean"], sum(known) / len(known), abs_tol=1e-5)


def test_the_attention_of_an_explanation_is_of_the_head_that_is_asked_for() -> None:
    made = translator(("decoder=transformer", "encoder=transformer", "attention.heads=2", "decoder.layers=2"))
    (forced,) = made.force([SENTENCE], ["one two three"])
    for asked, answered in (("auto", "1.mean"), ("2.1", "2.1"), ("mean", "mean")):
        for shift in (0, 1):
            wish = Style(made.tokenizer.target, asked, shift)
            answer = explain(made, SENTENCE, "one two three", wish, ["attention"])
            assert (answer["head"], answer["shift"]) == (answered, shift)
            assert np.allclose(answer["methods"]["attention"], word_weights(forced, asked, shift), atol=1e-5)
    with pytest.raises(UserError, match=r"head=3.1 does not exist. Give mean, 2.mean or one from 1.1 to 2.2"):
        explain(made, SENTENCE, "one two three", Style(made.tokenizer.target, "3.1"), ["attention"])
    assert explain(translator(NONE), SENTENCE, None, Style(made.tokenizer.target), ["erasure"])["head"] is None


def test_erasure_is_the_fall_of_the_log_probability() -> None:
    made = translator(("decoder=luong",))
    answer = explain(made, SENTENCE, "one two", Style(made.tokenizer.target), ["erasure"])
    (whole,) = made.force([SENTENCE], ["one two"])
    source, target = tokens_of(made.tokenizer, whole)
    left = [token for token, span in zip(source, whole.source_spans) if span is None or not 5 <= span[0] < 9]
    assert made.tokenizer.source.decode(left).split() == ["eins", "drei"]
    before, after = (inspect(made, tokens, target).of_pieces for tokens in (source, left))
    ends = next(at for at, span in enumerate(whole.spans) if span is not None and span[0] >= 4)
    assert answer["methods"]["erasure"][0][1] == pytest.approx(sum(before[:ends]) - sum(after[:ends]), abs=1e-4)


def test_what_has_no_words_is_not_explained() -> None:
    made = translator(("decoder=luong",))
    for text, target, field in (("", None, "text: must be one line"), (SENTENCE, " ", "target: has no words")):
        with pytest.raises(UserError, match=field):
            explain(made, text, target, style(made))


def test_measures_are_compared_by_their_sizes() -> None:
    """Attention has no sign: a gradient of -1 at the word that is looked at agrees with it."""
    weights, gradient = np.array([[0.6, 0.3, 0.1]]), np.array([[-1.0, 0.4, 0.2]])
    assert correlated(("attention", weights), ("gradient", gradient))["by_word"] == [1]
    assert agreement([weights, gradient]) == {"same": [True], "count": 1}
    assert agreement([weights, gradient[:, ::-1]]) == {"same": [False], "count": 0}
    assert agreement([weights]) is None


def test_rank_correlations_worked_by_hand() -> None:
    """Equal values share the mean of their ranks, 1.5 and 1.5: 4.5 over the root of 5 times 4.5."""
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([0.5, 0.5, 2, 7])) == pytest.approx(0.948683)
    assert rank_correlation(np.array([1.0, 2, 4]), np.array([9.0, 3, 1])) == -1
    assert rank_correlation(np.array([1.0, 2]), np.ones(2)) is None
    assert rank_correlation(np.array([]), np.array([])) is None


def test_with_another_sentence_its_own_words_are_kept() -> None:
    made = translator(("decoder=luong",))
    ((free, *_),) = made.translate_chunk(["rot vier"])
    answer = what_if(made, SENTENCE, Edits(text="rot vier", pins={2: [0]}), style(made), DETAILS)
    pieces = answer["variant"]["hypotheses"][0]["pieces"]
    assert answer["kept"] == 2
    assert [piece["text"] for piece in pieces[:2]] == list(free.pieces[:2])
    assert [piece["forced"] for piece in pieces] == [at < 2 for at in range(len(pieces))]


@pytest.mark.parametrize("wrong", [3, "12", (1,), (1, 2, 3), (1.5, 2), (1, "x"), (1, None), (True, 1), (1, True)])
def test_a_temperature_is_a_step_and_a_number(wrong: Any) -> None:
    made = translator(("decoder=luong",))
    ask = functools.partial(what_if, made, SENTENCE, Edits(), style(made), frozenset())
    with pytest.raises(UserError, match=r"^temperature=.*: must be a step and a number, such as \(0, 0\.5\)\.$"):
        ask(temperature=wrong)
    assert ask(temperature=(np.int64(1), np.float32(2)))["temperature"]["temperature"] == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("overrides", "reason"), [(NONE, "no attention"), (("attention/read=hard",), "a single piece")]
)
def test_a_temperature_that_would_change_nothing_is_refused(overrides: tuple[str, ...], reason: str) -> None:
    made = translator(overrides)
    with pytest.raises(UserError, match=f"temperature: .*{reason}"):
        what_if(made, SENTENCE, Edits(), style(made), frozenset(), temperature=(1, 2.0))


def test_enumerated_reads_have_a_temperature_unless_they_read_one_piece() -> None:
    words = "decoder=bahdanau", "attention/read=hard", "attention.read.objective=enumerate"
    ask = functools.partial(what_if, text=SENTENCE, edits=Edits(), include=frozenset(), temperature=(1, 5.0))
    made = translator(words)
    pieces = ask(made, style=style(made))["temperature"]["pieces"]
    assert any(abs(piece["before"] - piece["after"]) > 1e-4 for piece in pieces)
    one = translator((*words, "attention.read.searched=1"))
    with pytest.raises(UserError, match="a single piece"):
        ask(one, style=style(one))


def test_no_text_at_all_keeps_nothing() -> None:
    made = translator(("decoder=luong",))
    answer = what_if(made, SENTENCE, Edits(text="", pins={3: [0]}), style(made), frozenset())
    assert (answer["kept"], answer["variant"]["hypotheses"][0]["text"]) == (0, "")


def test_the_words_before_the_translators_own_pins_are_kept() -> None:
    made = replace(translator(("decoder=luong",)), slots=[None, None, 0])
    for text in (SENTENCE, "rot vier", "drei eins zwei"):
        (asked,) = keep_words(made, [Request(text)])
        ((expected, *_),) = made.translate_chunk([asked])
        own = style(made)
        assert explain(made, text, None, own, ["attention"], keeps=True)["translation"]["hypotheses"][0]["text"] == (
            expected.text
        )
        answer = what_if(made, text, Edits(), own, frozenset(), keeps=True)
        assert answer["baseline"]["hypotheses"][0]["text"] == expected.text
        changed = what_if(made, SENTENCE, Edits(text=text), own, frozenset(), keeps=True)
        assert changed["variant"]["hypotheses"][0]["text"] == expected.text
