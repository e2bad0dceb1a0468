"""Pipes and standard streams in place of files, and packed outputs, in every command that reads and writes text."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.system.processes import ALONE
from tests.data.test_streams import pipe_of
from tests.small import SMALL, Capture, call, pairs, refusal, write_lines
from tests.translate.test_partial import SENTENCES

pytestmark = pytest.mark.long

ROWS = pairs(120, seed=5)
TEXT = "".join(f"{source}\t{target}\n" for source, target in ROWS).encode()
TINY = ["data=files", "data.valid_pairs=20", "data.test_pairs=20", "trainer.steps=2", *SMALL]


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Give this process other standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def facts(run: Path) -> dict[str, str]:
    """The fingerprints of the text of a run."""
    text: dict[str, str] = json.loads((run / "run.json").read_text(encoding="utf-8"))["text"]
    return text


def test_a_pipe_trains_on_the_text_of_the_file_and_cannot_be_resumed(
    here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "both.tsv").write_bytes(TEXT)
    assert call("train", *TINY, "data.files=both.tsv", "name=file") == 0
    expected = facts(here / "checkpoints" / "file")
    with pipe_of(gzip.compress(TEXT), 100) as path:
        assert call("train", *TINY, f"data.files={path}", "name=pipe") == 0
    sides = ("".join(f"{row[side]}\n" for row in ROWS).encode() for side in (0, 1))
    with pipe_of(next(sides)) as source, pipe_of(next(sides).decode().encode("utf-16")) as target:
        assert call("train", *TINY, f"data.files=[{source},{target}]", "name=two") == 0
    numbered = b"".join(b"%d\t%s" % (row, line) for row, line in enumerate(TEXT.splitlines(keepends=True)))
    standard_input(monkeypatch, numbered)
    columns = ["data.columns=[2,3]", "data.documents=1"]
    assert call("train", *TINY, "data.files=-", "name=minus", *columns) == 0
    (here / "numbered.tsv").write_bytes(numbered)
    assert call("train", *TINY, "data.files=numbered.tsv", "name=numbered", *columns) == 0
    runs = here / "checkpoints"
    assert facts(runs / "pipe") == facts(runs / "two") == expected
    assert facts(runs / "minus") == facts(runs / "numbered")
    assert "data.files=-: a pipe. The run cannot be resumed or scored on this text." in capfd.readouterr().err
    for name in ("pipe", "minus"):
        message = refusal(capfd, here, "train", f"name={name}", "resume=true", "trainer.steps=4")
        assert f"{name} cannot be resumed: it was trained on a pipe (data.files=" in message
        assert "a pipe, and its text was not kept" in refusal(capfd, here, "evaluate", f"run=checkpoints/{name}")


def test_one_pipe_is_not_for_several_trainings(here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(here / "pipe")
    line = ["data.files=pipe", "name=a"]
    assert "the runs of a sweep cannot all read one pipe" in refusal(capfd, here, "train", "-m", *line, "seed=1,2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("nmt.train.session.joined", lambda: contextlib.nullcontext(ALONE))
    assert "several processes cannot read one pipe" in refusal(capfd, here, "train", *TINY, *line)


def test_standard_streams_have_a_name(
    trained: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = f"run={trained}"
    write_lines(here / "in", ["eins", "rot"])
    write_lines(here / "out", ["one", "red"])
    for words in (["input=-", "output=-"], ["input=-"], ["output=-"]):
        standard_input(monkeypatch, b"eins\r\nrot")
        assert call("translate", run, *words) == 0
        assert capfd.readouterr().out == "one\nred\n"
    standard_input(monkeypatch, b"\nblue\n")
    assert call("translate", run, "input=in", "prefix=-", "output=-") == 0
    assert capfd.readouterr().out.startswith("one\nblue")
    standard_input(monkeypatch, bz2.compress(b"eins\nrot\n"))
    assert call("align", run, "source=-", "target=out", "output=-") == 0
    links = capfd.readouterr().out
    assert links == "0-0\n0-0\n"
    standard_input(monkeypatch, links.encode())
    assert call("align", run, "source=in", "target=out", "gold=-", "output=-") == 0
    written = capfd.readouterr()
    assert (written.out, "AER" in written.err) == (links, True)
    with pipe_of(b"one\nred\n") as reference:
        standard_input(monkeypatch, b"eins\nrot\n")
        line = ["source=-", f"reference={reference}", "pictures=0", "output=scores"]
        assert call("evaluate", run, *line) == 0
    assert [path.name[:5] for path in (here / "scores").iterdir()] == ["text-"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prefix=-"], "input and prefix are both standard input, which can be read only once"),
        (["input=-", "prefix=/dev/stdin"], "can be read only once"),
        (["alignments=-"], "output and alignments would both go to standard output"),
        (["input=in", "output=a", "heatmaps=-"], "heatmaps=-: this is a folder"),
        (["input=in", "output=a.zip"], "output=a.zip: the output is text. Name a file with another ending"),
        (["input=in", "output=a.TGZ"], "output=a.TGZ: the output is text"),
        (["input=in", "output=a", "alignments=a.xlsx"], "alignments=a.xlsx: the output is text"),
    ],
)
def test_streams_that_do_not_fit(words: list[str], message: str, trained: Path, here: Path, capfd: Capture) -> None:
    write_lines(here / "in", ["eins"])
    assert message in refusal(capfd, here, "translate", f"run={trained}", *words)


@pytest.mark.parametrize(
    ("ending", "unpack"), [(".GZ", gzip.decompress), (".xz", lzma.decompress), (".bz2", bz2.decompress)]
)
def test_the_ending_of_an_output_says_how_it_is_packed(
    ending: str, unpack: Callable[[bytes], bytes], trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.translate.work.CHUNK", 4)
    write_lines(here / "in", SENTENCES)
    line = [f"run={trained}", "input=in", "threads=1"]
    assert call("translate", *line, "output=plain", "alignments=plain.links") == 0
    packed = [*line, f"output=out{ending}", f"alignments=links{ending}", f"heatmaps={here / 'pictures'}"]

    with monkeypatch.context() as patch:
        patch.setattr("nmt.drawing.heatmap.NotebookFigure.save", lambda _, path: fail_at(path))
        assert call("translate", *packed) == 130
    assert {path.name for path in here.glob("out*")} == {f"out{ending}.part"}
    with monkeypatch.context() as patch:
        patch.setattr("nmt.drawing.heatmap.NotebookFigure.save", lambda *_: [])
        assert call("translate", *packed, "resume=true") == 0
    for name, plain in (("out", "plain"), ("links", "plain.links")):
        assert unpack((here / f"{name}{ending}").read_bytes()) == (here / plain).read_bytes()
    before = (here / f"out{ending}").read_bytes()
    assert call("translate", *line, f"output=out{ending}") == 0
    assert (here / f"out{ending}").read_bytes() == before, "equal text gives equal bytes"
    assert not list(here.glob("*.part*"))


def fail_at(path: Path) -> list[str]:
    """Interrupt a translation at its tenth picture."""
    if path.name == "00010.png":
        raise KeyboardInterrupt
    return []
