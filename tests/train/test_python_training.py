"""`nmt.train(...)`: a training from Python, with the settings of the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import nmt
from nmt.system.errors import UserError
from tests.small import call, snapshot, words

train = cast("Callable[..., Path]", nmt.train)  # a module that can be called


def test_a_training_from_python_is_that_of_the_command_line(text: Path, here: Path) -> None:
    assert call("train", *words(text, here / "line", "name=a", "trainer.steps=4")) == 0
    folder = train(*words(text, here / "python", "name=a", "trainer.steps=4"))
    assert folder == here / "python" / "a"
    assert (folder / "best.safetensors").read_bytes() == (here / "line" / "a" / "best.safetensors").read_bytes()


def test_a_finished_run_is_left_as_it_is(trained: Path) -> None:
    before = snapshot(trained)
    assert train(f"name={trained.name}", f"checkpoints={trained.parent}", "resume=true") == trained
    assert snapshot(trained) == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [("trainer.stepz=3", "Did you mean 'trainer.steps'"), ("-m", "not an option"), ("name=a/b", "name")],
)
def test_a_mistake_is_an_error_of_python(setting: str, message: str, here: Path) -> None:
    with pytest.raises(UserError, match=message):
        train(setting, f"checkpoints={here}")
    assert not list(here.iterdir())
