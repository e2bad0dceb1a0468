"""The server of the page, with a model of each kind, for all modules of the tests in a browser."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.small import BOTH, call, words, write_text
from tests.serve.test_program import TIMEOUT, begin

#: A Transformer that learns the language of number words.
LAYERS = ("encoder.size=32", "attention/score=scaled_dot", "attention.size=null", "optimizer.lr=0.005",
          "encoder.layers=2", "decoder.layers=2", "attention.heads=2", "trainer.validate_every=200")  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: "learnt" (recurrent) and "transformer" are evaluated, "conv" has learnt little."""
    text, folder = write_text(tmp_path_factory.mktemp("text")), tmp_path_factory.mktemp("runs")
    made = {
        "learnt": ("trainer.steps=200", "trainer.validate_every=100"),
        "conv": ("encoder=conv", "decoder=conv", "trainer.steps=20"),
        "transformer": (*BOTH, *LAYERS, "trainer.steps=200"),
    }
    for name, line in made.items():
        assert call("train", *words(text, folder, f"name={name}", *line)) == 0
    for name in ("learnt", "transformer"):
        assert call("evaluate", f"run={folder / name}", "pictures=3", "threads=1") == 0
    return folder


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[str]:
    """The address of a server with all runs, the recurrent one first."""
    folders = ",".join(str(runs / name) for name in ("learnt", "conv", "transformer"))
    program, address = begin(f"[{folders}]", runs)
    with program:
        yield address
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0
