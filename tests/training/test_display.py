"""What a training shows: the progress bar, the log, and TensorBoard."""

import html
import io
import re
import sys
import threading
from pathlib import Path

import markdown  # type: ignore[import-untyped]
import numpy as np
import pytest

from nmt.system.errors import UserError
from nmt.system.progress import Progress
from nmt.training.board import Board
from nmt.translation.types import Translation

# What is shown


def test_a_log_file_gets_lines_at_intervals(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("nmt.system.progress.time.monotonic", lambda: now)
    lines: list[str] = []
    progress = Progress(lines.append, every_seconds=30)
    for second in range(100, 200, 10):
        now = float(second)
        progress.update((second - 100) / 100, f"at {second}")
    progress.say("validated")
    now = 300.0
    progress.update(None, "nobody knows of how much")
    progress.close()
    shown = " 30% at 130\n 60% at 160\n 90% at 190\nvalidated\nnobody knows of how much\n"
    assert capfd.readouterr().err == shown
    assert lines == ["validated"]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(lambda _: None)
    progress.update(0.5, "step 5")
    progress.say("validated")
    progress.update(0.75, "step 7")
    progress.update(None, "without a share")
    progress.close()
    shown = terminal.getvalue()
    assert " 50%" in shown
    assert "%" not in next(line for line in shown.split("\r") if "without a share" in line)
    assert "step 7" in shown
    assert "%" not in next(line for line in shown.replace("\r", "\n").split("\n") if "validated" in line)


# TensorBoard

PIECES = (["\u2581rot", "</s>"], ["\u2581red", "</s>"], [(0, 3), None], [(0, 3), None])
SEEN = Translation("rot", "red", -1.0, -1.0, *PIECES, np.eye(2, dtype=np.float32)[None])


def test_curves_samples_and_pictures_are_written(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing import event_accumulator  # type: ignore[import-untyped]

    board = Board(tmp_path, on=True)
    board.scalars(3, {"valid/bleu": 12.5})
    board.samples(3, [SEEN, SEEN._replace(weights=None)])
    board.close()
    found = event_accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("valid/bleu")] == [(3, 12.5)]
    assert found.Tags()["images"] == ["attention/0"]
    picture = found.Images("attention/0")[0]
    assert picture.width > 100
    assert picture.height > 100
    assert {f"samples/{number}/text_summary" for number in (0, 1)} <= set(found.Tags()["tensors"])


def test_samples_are_shown_as_they_are(tmp_path: Path) -> None:
    """TensorBoard's page takes Markdown."""
    from tensorboard.backend.event_processing import event_accumulator

    odd = SEEN._replace(source="1. *a* <b>_c_</b> | $x$", text="# {d} `e` ![f](g)", weights=None)
    board = Board(tmp_path, on=True)
    board.samples(1, [odd])
    board.close()
    found = event_accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    (event,) = found.Tensors("samples/0/text_summary")
    page = markdown.markdown(event.tensor_proto.string_val[0].decode(), extensions=["tables"])  # as TensorBoard does
    assert html.unescape(re.sub("<[^>]+>", "", page)).split() == [*odd.source.split(), *odd.text.split()]


def test_a_failure_of_the_writing_thread_is_silent_while_the_board_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard's own thread alone, for OSError alone; afterwards the process handles failures as before."""

    class Writer(threading.Thread):
        __module__ = "tensorboard.writer"

        def __init__(self, failure: Exception) -> None:
            super().__init__(target=lambda: (_ for _ in ()).throw(failure))

    failures: list[object] = []
    hook = lambda failure: failures.append(failure.exc_value)  # noqa: E731
    monkeypatch.setattr(threading, "excepthook", hook)
    missing = threading.Thread(target=lambda: (tmp_path / "missing").read_bytes())
    threads = [Writer(OSError(28, "full")), Writer(ValueError("fault")), missing]
    board = Board(tmp_path, on=True)
    for thread in threads:
        thread.start()
        thread.join()
    board.close()
    assert [type(failure) for failure in failures] == [ValueError, FileNotFoundError]
    assert threading.excepthook is hook
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"Cannot write the curves.*Make the folder writable.*tensorboard=false"):
        Board(tmp_path / "file" / "tensorboard", on=True)
    assert threading.excepthook is hook
