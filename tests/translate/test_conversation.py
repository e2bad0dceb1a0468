"""`nmt.translate` on a terminal, a real one: lines are typed after a prompt, and translations come at once."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small import Capture, call, environment, refusal, words, write_lines

pytestmark = pytest.mark.long

PROMPT = b"de> "
#: `python -m nmt.translate` that Ctrl-C reaches, also where a script has started the tests in the background.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from nmt.translate.__main__ import run
sys.exit(run())
"""


class Talk:
    """A program on a pseudo-terminal."""

    def __init__(self, *line: str, **variables: str) -> None:
        """Start `nmt.translate` with these words and environment variables."""
        self.screen, inner = pty.openpty()
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *line],
            env={**environment(), "TERM": "xterm", **variables},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)

    def until(self, wanted: bytes) -> bytes:
        """What appears up to `wanted`; later text is kept for the next time."""
        deadline = time.monotonic() + 120
        while wanted not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.screen], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.screen, 1 << 16)
                except OSError:  # the program has ended
                    break
            elif self.process.poll() is not None:
                break
        assert wanted in self.seen, self.seen
        before, _, self.seen = self.seen.partition(wanted)
        return before

    def say(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.screen, keys)


@pytest.fixture
def talks() -> Iterator[list[Talk]]:
    """Programs that are ended after the test."""
    started: list[Talk] = []
    yield started
    for talk in started:
        talk.process.kill()
        talk.process.wait()
        os.close(talk.screen)


def test_a_conversation(trained: Path, talks: list[Talk]) -> None:
    talk = Talk(f"run={trained}", "show=links", "device=cpu", "threads=1")
    talks.append(talk)
    assert b"Press Ctrl-D to end." in talk.until(PROMPT)
    talk.say(b"eins zwei\n")
    answer = talk.until(PROMPT)
    assert b"one two\r\n" in answer
    plain = re.sub(rb"\x1b\[\d*m", b"", answer).decode()
    assert "\n  eins¹ zwei²\r\n" in plain
    assert re.search("\n  one[¹²] two[¹²]\r\n", plain)
    assert b"\x1b[36m" in answer
    talk.say(b"\x1b[A\n")  # the arrow key brings the line back
    assert b"one two\r\n" in talk.until(PROMPT)
    talk.say(b"\n")  # an empty line is translated by an empty line
    assert b"\r\n\r\n" in talk.until(PROMPT)
    talk.say(b"\x04")
    assert talk.process.wait(60) == 0


def test_ctrl_c_at_the_prompt_ends_it_quietly(trained: Path, talks: list[Talk]) -> None:
    talk = Talk(f"run={trained}", "show=links", "device=cpu", "threads=1", NO_COLOR="1")
    talks.append(talk)
    talk.until(PROMPT)
    talk.say(b"drei\n")
    assert b"\x1b[3" not in talk.until(PROMPT)
    time.sleep(1)  # the line editor misses a signal that comes between the prompt and its wait for a key
    while talk.process.poll() is None:
        talk.process.send_signal(signal.SIGINT)  # what Ctrl-C does in a terminal of one's own
        with contextlib.suppress(subprocess.TimeoutExpired):
            talk.process.wait(10)
    assert talk.process.returncode == 0


def test_links_are_shown_on_standard_output(trained: Path, here: Path, capfd: Capture) -> None:
    source = write_lines(here / "in", ["eins zwei", "", "drei"])
    assert call("translate", f"run={trained}", f"input={source}", "show=links") == 0
    first, above, below, empty, *others = capfd.readouterr().out.splitlines()
    assert (first, above, empty) == ("one two", "  eins¹ zwei²", "")
    assert re.fullmatch("  one[¹²] two[¹²]", below)
    assert others[0] == "three"


@pytest.mark.parametrize("more", ["output=out", "format=tsv"])
def test_links_are_for_text_on_standard_output(more: str, trained: Path, here: Path, capfd: Capture) -> None:
    assert "give alignments=FILE" in refusal(capfd, here, "translate", f"run={trained}", "show=links", more)


def test_training_ends_with_a_sentence_and_its_links(text: Path, here: Path, capsys: Capture) -> None:
    assert call("train", *words(text, here, "name=run", "trainer.steps=60")) == 0
    lines = capsys.readouterr().err.splitlines()
    at = lines.index("A sentence of the validation set, and its translation:")
    source = re.sub("[¹²³⁴⁵⁶⁷⁸⁹⁰˒]", "", lines[at + 1]).split()
    sentences = (text / "valid.de").read_text(encoding="utf-8").splitlines()
    assert " ".join(source) in sentences
    assert 3 < len(source) <= 12
    assert {*"¹²³⁴"} & {*lines[at + 1]} & {*lines[at + 2]}
    log = (here / "run" / "train.log").read_text(encoding="utf-8")
    assert "A sentence of the validation set" in log
    assert re.search(r"\w\[\d\]", log)
