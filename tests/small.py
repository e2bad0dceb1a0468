"""A language of number words that a small model learns in a second or two, and how its verbs are called."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]

WORDS = {
    "null": "zero",
    "eins": "one",
    "zwei": "two",
    "drei": "three",
    "vier": "four",
    "fünf": "five",
    "sechs": "six",
    "sieben": "seven",
    "acht": "eight",
    "neun": "nine",
    "und": "and",
    "oder": "or",
    "rot": "red",
    "blau": "blue",
    "haus": "house",
}

Capture = pytest.CaptureFixture[str]

#: What makes a run small; each can be overridden by a later word.
SMALL = [
    "decoder=bahdanau",
    "attention/score=additive",
    "tokenizer.vocabulary_size=320",
    "model.embedding_size=32",
    "model.dropout=0",
    "encoder.size=16",
    "decoder.size=32",
    "attention.size=16",
    "optimizer.lr=0.02",
    "schedule.warmup_steps=5",
    "trainer.epochs=null",
    "trainer.tokens_per_batch=200",
    "trainer.label_smoothing=0",
    "trainer.tensorboard=false",
    "threads=1",
    "device=cpu",
]

#: A Transformer.
BOTH = ("encoder=transformer", "decoder=transformer")

#: What makes a comparison quick.
QUICK = ["trials=200", "pictures=1", "sentences=2", "batch_sentences=20", "device=cpu", "threads=1"]


def translation_of(sentence: str) -> str:
    """What a perfect model says."""
    return " ".join(WORDS[word] for word in sentence.split())


def pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Different sentences of one to five words with their translations."""
    generator = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(generator.choices(list(WORDS), k=generator.randint(1, 5)))] = None
    sentences = list(found)
    return [(sentence, translation_of(sentence)) for sentence in sentences]


#: Two lines that show nothing, and two that a reader takes for one.
ODD_LINES = ["\u200b\u2060", "\u2800", "zwei\u00ad fu\u0308nf", "zwei f\u200e\u00fcnf"]


def many_lines() -> list[str]:
    """200 lines of 1, 2, 50 and other numbers of words, among them blank ones and one of other letters."""
    lines = [*WORDS, " ".join(list(WORDS)[:2]), " ".join((list(WORDS) * 4)[:50]), "", "  ", "Haus Ωmega \u2028 zwei"]
    return [*lines, *(source for source, _ in pairs(200 - len(lines), seed=3))]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """Lines as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_text(folder: Path) -> Path:
    """300 pairs of training, 20 of validation and 20 of test text: train.de, train.en and so on."""
    rows = pairs(340)
    for name, first, last in (("train", 0, 300), ("valid", 300, 320), ("test", 320, 340)):
        for language, side in (("de", 0), ("en", 1)):
            write_lines(folder / f"{name}.{language}", [row[side] for row in rows[first:last]])
    return folder


def words(text: Path, checkpoints: Path, *more: str) -> list[str]:
    """The command line that trains a small model on the text of a folder."""
    data = ["data=text", "data.source=de", "data.target=en"]
    data += [f"data.{name}={text / name}" for name in ("train", "valid", "test")]
    changed = {word.partition("=")[0] for word in more}
    kept = [word for word in [*data, *SMALL] if word.partition("=")[0] not in changed]
    return [*kept, f"checkpoints={checkpoints}", f"cache={text / 'cache'}", *more]


def call(verb: str, *line: str) -> int:
    """Runs a verb in this process, as its `main` does, and returns the exit status; skips if its room was deleted."""
    command = pytest.importorskip(f"nmt.{verb}.__main__")
    return int(command.run(list(line)))


def learnt(run: Path, here: Path) -> int:
    """How many of the first 100 sentences of the training text a run translates exactly."""
    rows = pairs(100)
    source = write_lines(here / "in", [row[0] for row in rows])
    assert call("translate", f"run={run}", f"input={source}", f"output={here / 'out'}") == 0
    translations = (here / "out").read_text(encoding="utf-8").splitlines()
    return sum(ours == theirs for ours, (_, theirs) in zip(translations, rows, strict=True))


def environment() -> dict[str, str]:
    """The environment of a program that is run beside this one."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def start(verb: str, *line: str, cwd: Path) -> "subprocess.Popen[bytes]":
    """Starts a verb as a program of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"nmt.{verb}", *line],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def opened_for_writing(path: Path, reader: "subprocess.Popen[Any]") -> int:
    """A named pipe, opened when `reader` has opened it."""
    while reader.poll() is None:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.05)
    raise AssertionError(reader.communicate())


def weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    return safetensors.torch.load_file(path)


def same(first: Path, second: Path) -> bool:
    """Whether two files of weights hold the same numbers, bit by bit."""
    ours, theirs = weights(first), weights(second)
    return ours.keys() == theirs.keys() and all(ours[name].equal(theirs[name]) for name in ours)


def copied(run: Path, folder: Path) -> Path:
    """A copy of a run, to be changed."""
    return Path(shutil.copytree(run, folder / run.name))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, every folder with none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if "cache" not in path.parts
    }


def refusal(capfd: Capture, folder: Path, verb: str, *line: str) -> str:
    """The one message that a command line gets; nothing may have changed in the folder."""
    before = snapshot(folder)
    capfd.readouterr()
    assert call(verb, *line) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    # Notes on the text may come before it.
    message = err[err.index(f"nmt.{verb}: ") :]
    assert message.count(f"nmt.{verb}: ") == 1
    assert message.endswith("\n")
    assert snapshot(folder) == before
    return message
