"""Files that are protected, disks that are full, streams that are closed."""

import contextlib
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt.system import files
from nmt.system.errors import UserError
from tests.small import Capture, call, copied, environment, refusal, same, snapshot, words, write_lines

pytestmark = pytest.mark.long


@pytest.mark.skipif(os.geteuid() == 0, reason="whoever may do everything may write everywhere")
def test_a_protected_file_is_not_replaced(here: Path) -> None:
    path = write_lines(here / "mine", ["as it was"])
    path.chmod(0o400)
    with pytest.raises(UserError, match="write-protected"):
        files.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "as it was\n"


def test_a_private_file_stays_private(here: Path) -> None:
    path = write_lines(here / "mine", ["as it was"])
    path.chmod(0o600)
    files.write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("stream", "words"), [(1, ["--version"]), (2, ["run={run}", "max_source_length=2"])])
def test_a_closed_stream_is_like_nobody_listening(stream: int, words: list[str], here: Path, trained: Path) -> None:
    line = [sys.executable, "-m", "nmt.translate", *(word.format(run=trained) for word in words)]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {stream}>&-', "sh", *line],
        cwd=here,
        env=environment(),
        input=b"eins zwei\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == (0 if stream == 1 else 1), "nothing but the translation"
    assert done.stderr == b""


@pytest.mark.parametrize(("module", "words"), [("nmt", []), ("nmt.train", ["--help"])])
def test_a_reader_that_has_gone_is_no_failure(module: str, words: list[str], here: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-m", module, *words]
    with open(writer, "wb") as output:
        done = subprocess.run(line, cwd=here, env=environment(), stdout=output, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# Full disks


@pytest.fixture
def tiny(here: Path) -> Iterator[Path]:
    """A file system of 600 kilobytes."""
    folder = here / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leaves no room in a small file system."""
    with contextlib.suppress(OSError), (folder / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


def test_a_full_disk_stops_training_and_leaves_what_was_there_whole(
    tiny: Path, here: Path, text: Path, capfd: Capture
) -> None:
    settings = ["trainer.steps=4", "trainer.validate_every=2"]
    assert call("train", *words(text, tiny, "name=a", *settings)) == 1  # too little room for what resuming takes
    err = capfd.readouterr().err
    assert f"nmt.train: Cannot write {tiny / 'a' / 'trainer.pt'}: No space left on device. Free some space" in err
    assert "Traceback" not in err
    assert [path.name for path in (tiny / "a").iterdir() if path.name.startswith(".")] == []
    subprocess.run(["mount", "-o", "remount,size=5m", str(tiny)], check=True)
    assert call("train", "name=a", f"checkpoints={tiny}", "resume=true") == 0
    assert call("train", *words(text, here, "name=whole", *settings)) == 0
    assert same(tiny / "a" / "last.safetensors", here / "whole" / "last.safetensors")


@pytest.fixture
def protected(tiny: Path) -> Path:
    """A file system that nobody may write, not even root."""
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    return tiny


def test_a_cache_that_is_protected_wants_no_space(protected: Path, here: Path, text: Path, capfd: Capture) -> None:
    line = [word for word in words(text, here, "name=a", "trainer.steps=4") if not word.startswith("cache=")]
    message = refusal(capfd, here, "train", *line, f"cache={protected / 'cache'}")
    assert "Read-only file system. Choose a folder that can be written: cache=FOLDER" in message
    message = refusal(capfd, here, "train", *words(text, protected, "name=a", "trainer.steps=4"))
    assert "Read-only file system" in message
    assert "checkpoints=FOLDER" in message
    assert "space" not in message


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes a folder one that nobody may write, not even root."""
    for options in (["--bind"], ["-o", "remount,ro,bind"]):
        if subprocess.run(["mount", *options, str(folder), str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("a folder cannot be protected here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def protected_run(here: Path, unattentive: Path) -> Iterator[Path]:
    """A run that nobody may write; it has no scores."""
    run = copied(unattentive, here)
    with read_only(run):
        yield run


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["evaluate", "run={run}"], "output={run}/evaluation: the folder {run} is not writable. Choose another path."),
        (["compare", "runs={run}"], "No run can be compared"),
        (["compare", "runs={run}", "output={run}"], "output={run} is write-protected. Write somewhere else."),
        (
            ["train", "name={run.name}", "checkpoints={run.parent}", "resume=true", "trainer.steps=4"],
            "{run} is write-protected and cannot be resumed: give yourself permission (chmod -R u+w {run})",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_written_is_said_before_the_work(
    line: list[str], message: str, protected_run: Path, here: Path, capfd: Capture
) -> None:
    capfd.readouterr()
    verb, *words = (word.format(run=protected_run) for word in line)
    assert call(verb, *words) == 1
    out, err = capfd.readouterr()
    assert f"nmt.{verb}: {message.format(run=protected_run)}" in err
    assert "Translating" not in err
    assert out == ""
    if verb == "compare" and len(words) == 1:
        assert f"left out: none: on test it has no scores, and {protected_run} is write-protected: " in err
    else:
        assert err.count("\n") == 1


def test_results_that_cannot_be_replaced_are_said_before_the_work(
    here: Path, unattentive: Path, capfd: Capture
) -> None:
    run = copied(unattentive, here)
    write_lines(run / "evaluation" / "test", ["in the way"])
    message = refusal(capfd, here, "evaluate", f"run={run}")
    assert f"{run}/evaluation/test is a file where a folder would be made. Write the results elsewhere" in message
    (run / "evaluation" / "test").unlink()
    folder = run / "evaluation" / "test" / "heatmaps"
    folder.mkdir(parents=True)
    with read_only(folder):
        message = refusal(capfd, here, "evaluate", f"run={run}")
        assert f"{folder} is write-protected. Write the results elsewhere with output=FOLDER, or give" in message
        message = refusal(capfd, here, "evaluate", f"run={run}", f"output={run / 'evaluation'}")
        assert f"{folder} is write-protected. Choose another folder: output=FOLDER." in message


def failing_with(number: int) -> Callable[[int], None]:
    """Stands in for `os.fsync` on a disk that fails."""

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_the_cure_follows_from_the_reason(number: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing_with(number))
    with pytest.raises(UserError) as caught:
        files.write_text(here / "new", "text")
    assert os.strerror(number) in str(caught.value)
    assert ("Free some space" in str(caught.value)) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_full_disk_leaves_the_old_translation(tiny: Path, here: Path, trained: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"] * 3000)
    write_lines(tiny / "out.txt", ["as it was"])
    fill(tiny)
    line = [f"run={trained}", f"input={here / 'in.txt'}", "search=greedy", f"output={tiny / 'out.txt'}"]
    assert "No space left on device. Free some space" in refusal(capfd, tiny, "translate", *line)
    assert call("evaluate", f"run={trained}", f"output={tiny / 'scores'}") == 1
    err = capfd.readouterr().err
    assert "hypotheses.txt: No space left on device. Free some space" in err
    assert "Traceback" not in err
    assert not any(path.is_file() for path in (tiny / "scores").rglob("*"))


def test_a_full_disk_makes_no_run(tiny: Path, here: Path, text: Path, capfd: Capture) -> None:
    fill(tiny)
    line = words(text, tiny, "name=a", "trainer.steps=4", f"cache={here / 'cache'}")
    assert "No space left on device" in refusal(capfd, tiny, "train", *line)
    line = words(text, here, "name=a", "trainer.steps=4")
    line = [word for word in line if not word.startswith("cache=")]
    assert "cache=FOLDER" in refusal(capfd, here, "train", *line, f"cache={tiny / 'cache'}")
    assert not (here / "a").exists()


def test_a_disk_that_fails_while_writing_leaves_the_old_files(
    here: Path, run: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(run)
    monkeypatch.setattr(os, "fsync", failing_with(errno.ENOSPC))
    assert call("train", "name=numbers", f"checkpoints={here}", "resume=true", "trainer.steps=201") == 1
    assert "No space left on device. Free some space" in capfd.readouterr().err
    assert snapshot(run) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_standard_output_and_a_full_device_are_named(here: Path, trained: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"])
    line = [sys.executable, "-m", "nmt.translate", f"run={trained}", "input=in.txt"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(line, cwd=here, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"nmt.translate: Cannot write standard output: No space left on device")
    assert done.stderr.count(b"\n") == 1
    message = refusal(capfd, here, "translate", f"run={trained}", "input=in.txt", "output=/dev/full")
    assert "Cannot write /dev/full: No space left on device. Free some space" in message
