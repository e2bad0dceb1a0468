"""`nmt.translate` as a program: pipes, signals, and what it loads."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small import (
    ROOT,
    call,
    environment,
    opened_for_writing,
    snapshot,
    start,
    write_lines,
)
from tests.translate.test_translate import translate

pytestmark = pytest.mark.long


def test_lines_from_a_pipe_are_answered_as_they_come(trained: Path, here: Path) -> None:
    program = start("translate", f"run={trained}", "search=greedy", "threads=1", cwd=here)
    assert program.stdin is not None
    assert program.stdout is not None
    for line, answer in (("eins zwei\n", "one two\n"), ("\n", "\n"), ("rot\n", "red\n")):
        program.stdin.write(line.encode())
        program.stdin.flush()
        assert select.select([program.stdout], [], [], 600)[0], "no answer while the pipe is open"
        assert program.stdout.readline().decode() == answer
    program.stdin.write(b"blau")  # without a line end
    out, err = program.communicate(timeout=600)
    assert (program.returncode, out, err) == (0, b"blue\n", b"")
    assert list(here.iterdir()) == []


def test_a_reader_that_stops_ends_it_quietly(trained: Path, here: Path) -> None:
    # As `| head -n 1` does; and whoever writes the input is in no hurry to end it.
    program = start("translate", f"run={trained}", "search=greedy", "alignments=a.txt", cwd=here)
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdin.write(b"eins\n")
    program.stdin.flush()
    assert program.stdout.readline() == b"one\n"
    program.stdout.close()
    program.stdin.write(b"rot\n")
    program.stdin.flush()
    assert program.wait(timeout=600) == 0
    assert program.stderr.read() == b""
    assert list(here.iterdir()) == []
    program.stdin.close()
    program.stderr.close()


@pytest.mark.parametrize(("invalid", "answer"), [("replace", None), ("empty", b"")])
def test_a_filter_goes_on_after_what_is_not_utf8(invalid: str, answer: bytes | None, trained: Path, here: Path) -> None:
    program = start("translate", f"run={trained}", "search=greedy", f"invalid={invalid}", "threads=1", cwd=here)
    out, err = program.communicate(b"eins\nf\xfcnf\nrot\n\xff\n", timeout=600)
    lines = out.split(b"\n")
    assert (program.returncode, len(lines), lines[0], lines[2]) == (0, 5, b"one", b"red")
    assert answer is None or lines[1] == lines[3] == answer
    assert err.startswith(b"warning: standard input, line 2: not valid UTF-8.")
    _, counted, *notes = err.splitlines()
    assert counted == f"warning: 2 lines are not valid UTF-8 (invalid={invalid}).".encode()
    guessed = b"note: 2 different words are not in the training text: f, nf. The model guesses them from their parts."
    assert notes == ([guessed] if invalid == "replace" else [])


def test_output_that_would_go_nowhere_is_refused(trained: Path, here: Path) -> None:
    line = [sys.executable, "-m", "nmt.translate", f"run={trained}"]
    for more, status in (([], 1), ([f"output={here / 'out.txt'}"], 0)):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", *line, *more],
            cwd=here,
            env=environment(),
            input=b"eins\n",
            capture_output=True,
            check=False,
        )
        message = b"nmt.translate: Standard output is closed, so the translations would be lost. Give output=FILE.\n"
        assert (done.returncode, done.stdout, done.stderr) == (status, b"", message * status)
    assert (here / "out.txt").read_bytes() == b"one\n"


def test_being_ended_leaves_no_half_file(trained: Path, here: Path) -> None:
    write_lines(here / "out.txt", ["as it was"])
    os.mkfifo(here / "in.txt")
    program = start("translate", f"run={trained}", "input=in.txt", "output=out.txt", "threads=1", cwd=here)
    pipe = opened_for_writing(here / "in.txt", program)  # the partial file is there by then
    os.write(pipe, b"eins\n")
    assert {path.name for path in here.iterdir()} == {*("in.txt", "out.txt", "out.txt.part", ".out.txt.lock")}
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=600)
    os.close(pipe)
    (here / "in.txt").unlink()
    assert (program.returncode, out, err) == (143, b"", b"nmt.translate: terminated\n")
    assert snapshot(here) == {"out.txt": b"as it was\n"}


def test_only_what_is_needed_is_loaded(trained: Path, here: Path) -> None:
    script = (
        "import sys; from nmt.translate.__main__ import run; run(); "
        "print(*sorted({name.split('.')[0] for name in sys.modules} & "
        "{'torch', 'datasets', 'pyarrow', 'pandas', 'sacrebleu', 'sacremoses', 'matplotlib', 'tensorboard', 'babel'}))"
    )
    write_lines(here / "in.txt", ["eins"])
    done = subprocess.run(
        [sys.executable, "-c", script, f"run={trained}", f"input={here / 'in.txt'}", "output=/dev/stderr"],
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("torch\n", "one\n")
    assert list(here.iterdir()) == [here / "in.txt"]


def test_help_loads_no_torch() -> None:
    script = (
        "import importlib, sys\n"
        "sys.argv[1:] = ['--help']\n"
        "for verb in ('train', 'translate', 'evaluate'):\n"
        "    assert importlib.import_module(f'nmt.{verb}.__main__').run() == 0\n"
        "assert not {'torch', 'datasets', 'matplotlib', 'sentencepiece'} & sys.modules.keys()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for verb in ("train", "translate", "evaluate"):
        assert f"usage: python -m nmt.{verb}" in done.stdout


def test_a_named_pipe_is_written_to(trained: Path, here: Path) -> None:
    os.mkfifo(here / "pipe")
    write_lines(here / "in.txt", ["eins", "rot"])
    reader = subprocess.Popen(["cat", "pipe"], cwd=here, stdout=subprocess.PIPE)
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'pipe'}") == 0
    assert reader.communicate(timeout=600)[0] == b"one\nred\n"
    assert not (here / "pipe").is_file()


def test_a_link_stays_a_link(trained: Path, here: Path) -> None:
    write_lines(here / "real.txt", ["old"])
    (here / "out.txt").symlink_to("real.txt")
    assert translate(trained, ["eins"], here) == ["one"]
    assert (here / "out.txt").is_symlink()
