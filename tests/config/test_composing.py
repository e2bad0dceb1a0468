"""What a user mistypes is answered in one line; everything else is of the kind that its default is."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.config.configuration import resolved
from tests.config.tree import refusal, train


def test_a_resolved_configuration_has_no_interpolations() -> None:
    saved = OmegaConf.to_yaml(resolved(train("encoder.size=64")))
    assert "twice: 64\n" in saved
    assert "$" not in saved


def test_kinds_are_those_of_the_defaults() -> None:
    config = train("name=001", "data.source=no", "seed=1e3", "model.dropout=0", "precision=32", "trainer.epochs=null")
    assert (config.name, config.data.source, config.precision) == ("001", "no", "32")
    assert config.seed == 1000
    assert type(config.seed) is int
    assert config.model.dropout == 0
    assert config.trainer.epochs is None


def test_files_of_ones_own_need_no_data_choice() -> None:
    assert list(train("data.files=[a.de,b.en]").data.files) == ["a.de", "b.en"]
    assert train("data.files=a.tsv", "data=files").data.files == "a.tsv"


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("attention/score=null", ["There is no attention/score=null", "additive, dot, scaled_dot"]),
        ("attention/score=aditive", ["There is no attention/score=aditive", "'additive'"]),
        ("trainer.stpes=3", ["'trainer.stpes'", "'trainer.steps'"]),
        ("epochs=3", ["'epochs'", "'trainer.epochs'"]),
        ("attention.score=dot", ["written with a slash", "attention/score=dot"]),
        ("encoder/size=3", ["written with a dot", "encoder.size=3"]),
        ("encoder.forget_bias=2", ["belongs to encoder=lstm"]),
        ("encoder.size=abc", ["encoder.size=abc", "a whole number", "256"]),
        ("encoder.size=null", ["encoder.size=null", "a whole number"]),
        ("encoder.bidirectional=yes", ["true or false"]),
        ("model.dropout=high", ["model.dropout", "a number"]),
        ("model.dropout=nan", ["a finite number"]),
        ("device=[cuda]", ["must be text"]),
        ("model=3", ["a group of settings", "model.dropout"]),
        ("encoder.size=3,4", ["several values"]),
        ("encoder.size=[3", ["cannot be parsed", "Quote"]),
        ("device=größe", ["cannot be parsed", "device='größe'"]),
        ("search=beam", ["no choice 'search'"]),
        ("seed = 3", ["spaces"]),
        ("--seed=3", ["without dashes: seed=3"]),
        ("--seed", ["not an option of nmt.train", "seed=VALUE"]),
        ("=", ["without spaces"]),
        ("resume", ["'resume' needs a value", "resume=VALUE"]),
        ("~encoder", ["cannot be removed", "encoder=VALUE"]),
        ("reusme", ["key=value", "'resume'"]),
        ("twice=abc", ["a whole number", "256"]),
        ("+seed=3", ["seed"]),
        ("seed=${nowhere}", ["Invalid configuration", "nowhere"]),
    ],
)
def test_a_mistake_is_named_with_its_cure(word: str, parts: list[str]) -> None:
    message = refusal(word)
    for part in parts:
        assert part in message
    assert "+encoder" not in message
    assert "hydra" not in message.lower()


def test_a_bare_path_is_recognised() -> None:
    Path("text.de").touch()
    Path("model").mkdir()
    assert "data.files=" in refusal("text.de")
    assert "run=model" in refusal("model", verb="translate")
    assert "input=text.de" in refusal("text.de", verb="translate")
