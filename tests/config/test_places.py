"""A group of choices that stands in two places: attention in the decoder, and self-attention in the encoder."""

from pathlib import Path

import pytest

from nmt.config.combinations import expand
from nmt.config.composition import at_place, compose
from nmt.config.configuration import flattened
from nmt.config.resumption import merge_for_resume
from nmt.system.errors import UserError
from nmt.train.sweep import _names
from tests.config.tree import refusal, train

SCORE = "attention/score@encoder.self_attention.score"


@pytest.fixture(autouse=True)
def transformer(tree: Path) -> None:
    (tree / "encoder" / "transformer.yaml").write_text(
        "defaults:\n  - /attention@self_attention: default\n  - _self_\n_target_: e\nlayers: 2\nsize: 8\n"
    )


@pytest.mark.parametrize("key", [SCORE, "encoder/self_attention/score", "encoder/score"])
def test_each_place_has_a_choice_of_its_own(key: str) -> None:
    config = train("encoder=transformer", f"{key}=dot")
    assert config.encoder.self_attention.score._target_ == "b"
    assert config.attention.score._target_ == "a"
    assert (config.choices[SCORE], config.choices["attention/score"]) == ("dot", "additive")
    assert train("encoder=transformer", f"{key}=bahdanau", "attention/score=dot").choices[SCORE] == "additive"


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("encoder.self_attention.score=dot", ["written with a slash: encoder/self_attention/score=dot"]),
        ("encoder/self_attention/score=dott", ["There is no attention/score=dott", "'dot'"]),
        ("encoder/self_attention/heads=2", ["written with a dot: encoder.self_attention.heads=2"]),
        ("encoder/self_attention/scroe=dot", ["no choice 'encoder/self_attention/scroe'"]),
        ("encoder/read=soft", ["no choice 'encoder/read'"]),
        ("encoder.bidirectional=true", ["encoder.bidirectional belongs to encoder=gru or encoder=lstm"]),
    ],
)
def test_a_mistake_in_an_inner_choice_is_named(word: str, parts: list[str]) -> None:
    message = refusal("encoder=transformer", word)
    for part in parts:
        assert part in message


def test_two_choices_with_one_short_name_are_told() -> None:
    with pytest.raises(UserError, match=r"several meanings.*encoder\.self_attention\.score=dot"):
        at_place("encoder/score=dot", [SCORE, "attention/score@encoder.other.score"])


def test_a_sweep_over_both_places_has_four_runs_with_names() -> None:
    line = ["encoder=transformer", "attention/score=additive,dot", f"{SCORE}=additive,dot"]
    combinations = expand("train", line)
    swept = [combination.swept for combination in combinations]
    assert len({tuple(values.items()) for values in swept}) == 4
    assert _names(swept) == ["additive-additive", "additive-dot", "dot-additive", "dot-dot"]
    last = compose("train", combinations[-2].overrides)
    assert (last.choices["attention/score"], last.choices[SCORE]) == ("dot", "additive")
    short = expand("train", [line[0], line[1], "encoder/score=additive,dot"])
    assert _names([combination.swept for combination in short]) == _names(swept)


def test_a_resumed_run_keeps_the_choices_of_each_place() -> None:
    first = ["encoder=transformer", f"{SCORE}=dot"]
    saved = compose("train", first)
    for word in ("encoder/score=dot", f"{SCORE}=dot", "attention/score=additive"):
        assert flattened(merge_for_resume(saved, first, [word])) == flattened(saved)
    with pytest.raises(UserError, match=r"attention/score@encoder\.self_attention\.score: dot -> additive"):
        merge_for_resume(saved, first, ["encoder/score=additive"])
