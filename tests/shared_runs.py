"""Runs that are trained once and used by many tests: a plugin of `conftest.py`."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests import colours
from tests.small import BOTH, call, copied, words, write_text


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process of this test session fills and the others wait for."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tmp_path_factory.mktemp(name)
        make(folder)
        return folder
    folder = tmp_path_factory.getbasetemp().parent / f"shared-{name}"
    with FileLock(f"{folder}.lock"):
        if not folder.with_suffix(".made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            folder.with_suffix(".made").touch()
    return folder


def trained_once(tmp_path_factory: pytest.TempPathFactory, name: str, line: Callable[[Path], list[str]]) -> Path:
    """A run of this process alone, copied from one that is trained once a session."""

    def train(folder: Path) -> None:
        assert call("train", *line(folder)) == 0

    (run,) = (path.parent for path in once(tmp_path_factory, name, train).glob("*/config.yaml"))
    return Path(shutil.copytree(run, tmp_path_factory.mktemp("runs") / run.name))


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of parallel text."""
    return once(tmp_path_factory, "text", write_text)


@pytest.fixture(scope="session")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt the language. Whoever changes it changes a copy."""
    more = ("name=numbers", "trainer.steps=200", "trainer.validate_every=100", "trainer.tensorboard=true")
    return trained_once(tmp_path_factory, "trained", lambda folder: words(text, folder, *more))


@pytest.fixture(scope="session")
def transformer(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that has learnt the language by heart."""
    sizes = ("encoder.size=32", "attention/score=scaled_dot", "attention.size=null", "optimizer.lr=0.005")
    layers = ("encoder.layers=2", "decoder.layers=2", "trainer.steps=200", "trainer.validate_every=200")
    more = ("name=numbers", *BOTH, *sizes, *layers)
    return trained_once(tmp_path_factory, "transformer", lambda folder: words(text, folder, *more))


@pytest.fixture(scope="session")
def unattentive(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with decoder=none that has learnt nothing."""
    more = ("name=none", "decoder=none", "trainer.steps=2")
    return trained_once(tmp_path_factory, "unattentive", lambda folder: words(text, folder, *more))


@pytest.fixture(scope="session")
def second(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the tokenizer of `trained` and other weights."""
    more = ("name=second", "seed=2", "trainer.steps=150", "attention.heads=2", "decoder=luong")
    return trained_once(tmp_path_factory, "second", lambda folder: words(text, folder, *more))


@pytest.fixture(scope="session")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents whose second sentence needs the first."""
    return once(tmp_path_factory, "documents", colours.write_documents)


@pytest.fixture(scope="session")
def seeing(coloured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that sees the sentence before and has learnt to use it."""
    more = ("name=seen", *colours.LEARNING)
    return trained_once(tmp_path_factory, "seeing", lambda folder: colours.words(coloured, folder, *more))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(trained: Path, here: Path) -> Path:
    """A copy of `trained` in `here`, to be changed."""
    return copied(trained, here)
