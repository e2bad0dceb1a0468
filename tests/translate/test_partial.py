"""Translations into files: what is written outlives the process, and is continued."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.translate.line_input import LineProgress
from tests.small import Capture, call, environment, opened_for_writing, pairs, refusal, write_lines

pytestmark = pytest.mark.long


SENTENCES = [sentence for sentence, _ in pairs(23, seed=9)]
SMALL_CHUNKS = """
import sys
from nmt.translate import work
from nmt.translate.__main__ import run
work.CHUNK = 4
sys.exit(run())
"""


def program(here: Path, *line: str) -> "subprocess.Popen[bytes]":
    """Start `nmt.translate`, with chunks of four lines."""
    return subprocess.Popen(
        [sys.executable, "-c", SMALL_CHUNKS, *line], cwd=here, env=environment(), stderr=subprocess.PIPE
    )


def until_written(process: "subprocess.Popen[Any]", path: Path, lines: int) -> None:
    """Wait until a process has written this many lines to a file."""
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < lines):
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize(
    ("number", "more"),
    [
        (signal.SIGKILL, ["search=sampling", "search.temperature=2.5"]),
        (signal.SIGTERM, ["search=greedy", "prefix=prefixes.txt"]),
    ],
)
def test_a_killed_translation_continues_to_the_same_lines(
    number: signal.Signals, more: list[str], trained: Path, here: Path, capfd: Capture
) -> None:
    write_lines(here / "prefixes.txt", ["", "one", "red blue"] + [""] * (len(SENTENCES) - 3))
    write_lines(here / "in.txt", SENTENCES)
    words = [f"run={trained}", "threads=1", *more]
    assert call("translate", *words, "input=in.txt", "output=whole.txt", "alignments=whole.links") == 0
    write_lines(here / "out.txt", ["as it was"])
    os.mkfifo(here / "pipe")
    line = [*words, "output=out.txt", "alignments=out.links"]
    process = program(here, *line, "input=pipe")
    pipe = opened_for_writing(here / "pipe", process)
    os.write(pipe, "".join(f"{sentence}\n" for sentence in SENTENCES[:14]).encode())
    until_written(process, here / "out.links.part", 12)
    process.send_signal(number)
    _, messages = process.communicate(timeout=600)
    os.close(pipe)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    if number == signal.SIGTERM:
        assert b"12 lines are translated and kept in" in messages
        assert messages.endswith(b"nmt.translate: terminated\n")
    assert (here / "out.txt").read_text(encoding="utf-8") == "as it was\n"
    for name, more_bytes in (("out.txt", b"13\n14\nhalf a li"), ("out.links", b"0-0 ")):
        with (here / f"{name}.part").open("ab") as file:
            file.write(more_bytes)  # as a kill in the middle of writing leaves
    capfd.readouterr()
    assert call("translate", *line, "input=in.txt", "resume=true") == 0
    assert capfd.readouterr().err.startswith("12 lines are translated already.\n")
    for ending in ("txt", "links"):
        assert (here / f"out.{ending}").read_bytes() == (here / f"whole.{ending}").read_bytes()
    assert {path.name for path in here.iterdir()} - {".out.txt.lock"} == {
        *("in.txt", "prefixes.txt", "pipe"),
        *(f"{name}.{ending}" for name in ("out", "whole") for ending in ("txt", "links")),
    }


def test_kept_lines_are_not_overwritten(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr("nmt.translate.work.CHUNK", 4)
    write_lines(here / "in.txt", SENTENCES)
    line = [f"run={trained}", "input=in.txt", "output=out.txt"]
    assert call("translate", *line) == 0
    whole = (here / "out.txt").read_bytes()
    text = (here / "in.txt").read_bytes().split(b"\n")
    (here / "in.txt").write_bytes(b"\n".join([*text[:17], b"f\xfcnf", *text[18:]]))
    capfd.readouterr()
    assert call("translate", *line) == 1
    err = capfd.readouterr().err
    assert err.startswith(f"16 lines are translated and kept in {here}/out.txt.part. To continue, run the same command")
    assert "in.txt, line 18: not valid UTF-8" in err
    write_lines(here / "short.txt", SENTENCES[:15])
    for more, part in (
        ([], "To continue it, add resume=true. To start again, delete them: rm"),
        (["resume=auto", "alignments=links"], "out.txt.part was begun with other outputs"),
        (["resume=true", "input=short.txt"], "short.txt has 15 lines, but 16 are translated already."),
        (["resume=true", "search.nbest=2"], "resume=true needs one translation a line."),
    ):
        words = {word.partition("=")[0]: word for word in [*line, *more]}
        assert part in refusal(capfd, here, "translate", *words.values())
    assert call("translate", *line, "resume=auto", "invalid=empty", "batch_sentences=7") == 0
    lines, now = whole.split(b"\n"), (here / "out.txt").read_bytes().split(b"\n")
    assert [*now[:17], *now[18:]] == [*lines[:17], *lines[18:]]
    assert now[17] == b""
    assert sorted(path.name for path in here.glob("out*")) == ["out.txt"]


def test_there_must_be_something_to_resume(trained: Path, here: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"])
    line = [f"run={trained}", "input=in.txt"]
    message = refusal(capfd, here, "translate", *line, "output=out.txt", "resume=true")
    assert "There is nothing to resume: no interrupted translation has left" in message
    assert "resume=auto needs a file to continue. Give output=FILE" in refusal(
        capfd, here, "translate", *line, "resume=auto"
    )
    assert "resume=maybe: must be true, auto or false" in refusal(
        capfd, here, "translate", *line, "output=out.txt", "resume=maybe"
    )
    assert call("translate", *line, "output=out.txt", "resume=auto") == 0
    assert (here / "out.txt").read_text(encoding="utf-8") == "one\n"
    write_lines(here / "out.txt.part", ["somebody else's"])
    assert "has left 1 lines for" in refusal(capfd, here, "translate", *line, "output=out.txt")
    (here / "out.txt.part").write_text("on")  # killed in its first line, which "0 lines, add resume=true" is about
    assert "has left 0 lines for" in refusal(capfd, here, "translate", *line, "output=out.txt")
    assert call("translate", *line, "output=out.txt", "resume=true") == 0
    assert (here / "out.txt").read_text(encoding="utf-8") == "one\n"


def test_one_process_writes_a_file(trained: Path, here: Path, capfd: Capture) -> None:
    os.mkfifo(here / "pipe")
    write_lines(here / "in.txt", ["eins"])
    process = program(here, f"run={trained}", "input=pipe", "output=out.txt")
    pipe = opened_for_writing(here / "pipe", process)
    message = refusal(capfd, here, "translate", f"run={trained}", "input=in.txt", f"output={here}/out.txt")
    assert re.search(rf"out\.txt: another process is writing this file \(process {process.pid} on ", message)
    assert message.endswith("Wait until it ends, or give another output=.\n")
    os.write(pipe, b"zwei\n")
    os.close(pipe)
    assert process.communicate(timeout=600)[1] == b""
    assert (process.returncode, (here / "out.txt").read_bytes()) == (0, b"two\n")
    assert call("translate", f"run={trained}", "input=in.txt", f"output={here}/out.txt") == 0
    assert (here / "out.txt").read_bytes() == b"one\n"


def test_progress_is_calm(here: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    path = write_lines(here / "in.txt", ["eins"] * 400)
    for source, shown in (
        (path, " 40% 160 of 400 lines | 1.0 lines/s | 4:00 left\n 70% 280 of 400 lines | 2.0 lines/s | 1:00 left\n"),
        (None, "160 lines | 1.0 lines/s\n280 lines | 2.0 lines/s\n"),
    ):
        now = 0.0
        with LineProgress(source, done=100) as progress:
            for second in range(1, 100):
                now = float(second)
                if second in (30, 60, 90):
                    progress.add(30 if second < 90 else 120)
        assert capfd.readouterr().err == shown
    with LineProgress(path, 0, has_bar=False) as progress:
        now = 1e6
        progress.add(7)
        progress.say("warning: seen")
    assert capfd.readouterr().err == "warning: seen\n"
