"""Runs that are trained once and used by many tests."""

from pathlib import Path

import pytest

from tests.pipeline import colours
from tests.pipeline.small import BOTH, call, words, write_text


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
def transformer(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that has learnt the language by heart."""
    folder = tmp_path_factory.mktemp("transformer")
    sizes = ("encoder.size=32", "attention/score=scaled_dot", "attention.size=null", "optimizer.lr=0.005")
    layers = ("encoder.layers=2", "decoder.layers=2", "trainer.steps=200", "trainer.validate_every=200")
    assert call("train", *words(text, folder, "name=numbers", *BOTH, *sizes, *layers)) == 0
    return folder / "numbers"


@pytest.fixture(scope="session")
def unattentive(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with decoder=none that has learnt nothing."""
    folder = tmp_path_factory.mktemp("runs")
    assert call("train", *words(text, folder, "name=none", "decoder=none", "trainer.steps=2")) == 0
    return folder / "none"


@pytest.fixture(scope="session")
def second(trained: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run beside `trained` with the same tokenizer and other weights."""
    folder = tmp_path_factory.mktemp("second")
    line = words(text, folder, "name=second", "seed=2", "trainer.steps=150", "attention.heads=2", "decoder=luong")
    assert call("train", *line) == 0
    return folder / "second"


@pytest.fixture(scope="session")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents whose second sentence needs the first."""
    return colours.write_documents(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="session")
def seeing(coloured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that sees the sentence before and has learnt to use it."""
    folder = tmp_path_factory.mktemp("runs")
    assert call("train", *colours.words(coloured, folder, "name=seen", *colours.LEARNING)) == 0
    return folder / "seen"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
