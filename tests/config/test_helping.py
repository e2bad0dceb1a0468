"""What `--help` prints: a screen, and with `--help=all` everything."""

import pytest

from nmt.config import configuration
from nmt.config.help_text import WIDTH, help_text

VERBS = ("train", "translate", "evaluate", "align", "contrast", "compare", "serve", "export", "check")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration files as they are."""
    monkeypatch.setattr(configuration, "config_folder", CONFIG_FOLDER)


CONFIG_FOLDER = configuration.config_folder


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("installed")
def test_help_fits_a_screen(verb: str) -> None:
    lines = help_text(verb).splitlines()
    assert 10 <= len(lines) <= 40
    assert max(map(len, lines)) <= WIDTH == 100
    assert f"{verb} --help=all" in lines[-1]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("installed")
def test_all_of_the_help_has_every_setting(verb: str) -> None:
    lines = help_text(verb, everything=True).splitlines()
    assert max(map(len, lines)) <= WIDTH
    keys = {line.partition("=")[0].strip() for line in lines if "=" in line}
    content = configuration.config_folder() / f"{verb}.yaml"
    named = {line.partition(":")[0] for line in content.read_text().splitlines() if line[:1].isalpha() and ":" in line}
    assert named - {"defaults", "model"} <= keys
    assert any("debug=true" in line for line in lines)


@pytest.mark.usefixtures("installed")
def test_help_explains_the_composed_settings() -> None:
    def explained(word: str, *overrides: str) -> list[str]:
        lines = help_text("train", True, overrides).splitlines()
        return [line.strip().partition(" ")[2].strip() for line in lines if line.split()[:1] == [word]]

    assert explained("trainer.epochs=4") == ["passes over the training data"], "the default of the built-in corpus"
    assert explained("tokenizer.vocabulary_size=2000")[0].startswith("pieces per model"), "a comment of its base"
    assert explained("tokenizer.model_type=bpe", "tokenizer=bpe") == [""]
    assert explained("data.train=train", "data=hub") == ["name of the training split"]
    assert explained("encoder.positions.distance=3", "encoder=transformer", "encoder/positions=relative",
                     "encoder.positions.distance=3")[0].startswith("the paper's k")  # fmt: skip
    assert explained("jobs=0") != []


@pytest.mark.usefixtures("installed")
def test_help_names_what_most_need() -> None:
    text = help_text("train")
    for key in ("trainer.minutes", "data.files", "name", "resume", "attention/score"):
        assert f"  {key}" in text
