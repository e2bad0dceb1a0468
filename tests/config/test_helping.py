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
def test_all_of_the_help_says_which_choice_a_setting_belongs_to() -> None:
    lines = help_text("train", everything=True).splitlines()

    def explained(word: str) -> list[str]:
        return [line.split(maxsplit=1)[1] for line in lines if line.split()[:1] == [word]]

    assert explained("data.train=train") == ["(with data=hub) name of the training split"]
    assert explained("data.train=null") == ["(with data=text) prefix of the training files"]
    assert explained("optimizer.fused=true") == ["(with optimizer=adamw,adam)"]
    assert explained("tokenizer.sampling=0.0")[0].startswith("(with tokenizer=unigram) segment each training")
    assert explained("tokenizer.joint=true")[0].startswith("one model for both"), "every tokenizer has it"
    assert "(with" not in help_text("train")
