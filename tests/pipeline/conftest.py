"""Runs that are trained once and used by many tests."""

from pathlib import Path

import pytest

from tests.pipeline.small import call, words, write_text


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of parallel text."""
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="session")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt the language. Whoever changes it changes a copy."""
    folder = tmp_path_factory.mktemp("runs")
    line = words(
        text, folder, "name=numbers", "trainer.steps=200", "trainer.validate_every=100", "trainer.tensorboard=true"
    )
    assert call("train", *line) == 0
    return folder / "numbers"


@pytest.fixture(scope="session")
def unattentive(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with decoder=none that has learnt nothing."""
    folder = tmp_path_factory.mktemp("runs")
    assert call("train", *words(text, folder, "name=none", "decoder=none", "trainer.steps=2")) == 0
    return folder / "none"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
