"""Systems that lack what Linux has: each lack in processes of their own, and all of them together."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.config.quotes import quote
from nmt.system import platform as system
from nmt.system.errors import UserError
from tests import lacks
from tests.small import environment, words, write_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lacks are simulated on Linux")

# Each command that writes, in one process: it writes twice, so that files are replaced.
WORK = """
import importlib, sys

text, runs, *line = sys.argv[1:]
for verb, *words in (
    ("train", "--help=all"),
    ("align", "--help=all"),
    ("translate", "--cfg", "input=\u6570.txt", "run=a"),
    ("train", *line, "name=a", "trainer.steps=4"),
    ("train", f"checkpoints={runs}", "name=a", "resume=true", "trainer.steps=8"),
    ("translate", f"run={runs}/a", f"input={text}/test.de", f"output={runs}/out.txt", "threads=1", "device=cpu"),
    ("translate", f"run={runs}/a", f"input={text}/test.de", f"output={runs}/out.txt", "threads=1", "device=cpu"),
    ("evaluate", f"run={runs}/a", "pictures=1", "threads=1", "device=cpu"),
    ("evaluate", f"run={runs}/a", "pictures=0", "threads=1", "device=cpu"),
    ("check", f"run={runs}/a"),
):
    status = importlib.import_module(f'nmt.{verb}.__main__').run(words)
    assert status == 0, (verb, status)
"""


def lacking(folder: Path, *names: str) -> dict[str, str]:
    """The environment of programs that lack something."""
    path = folder / "lacking"
    path.mkdir()
    shutil.copy(lacks.__file__, path / "sitecustomize.py")
    inherited = environment()
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join((str(path), inherited["PYTHONPATH"])),
        "NMT_LACKS": ",".join(names),
        "USERNAME": "somebody",
        "PYTHONIOENCODING": "cp1252",
        "PYTHONWARNDEFAULTENCODING": "1",
    }


@pytest.mark.long
@pytest.mark.parametrize("names", [*((name,) for name in lacks.LACKS), tuple(lacks.LACKS)], ids="+".join)
def test_commands_work_without(names: tuple[str, ...], tmp_path: Path) -> None:
    text = write_text(tmp_path / "text")
    line = words(text, tmp_path / "runs", "trainer.validate_every=4", "trainer.tensorboard=true")
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(text), str(tmp_path / "runs"), *line],
        env=lacking(tmp_path, *names),
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert len((tmp_path / "runs" / "out.txt").read_bytes().splitlines()) == 20


@pytest.mark.long
def test_a_sweep_works_and_stops_without_groups_and_signals_of_posix(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text")
    line = words(text, tmp_path / "runs", "name=sweep", "trainer.steps=4", "seed=1,2")
    done = subprocess.run(
        [sys.executable, "-m", "nmt.train", "-m", *line, "jobs=2"],
        env=lacking(tmp_path, *lacks.LACKS),
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"2 finished" in done.stderr


def test_the_lacks_are_felt(tmp_path: Path) -> None:
    """The simulation fails what it should: without this test it could take away nothing."""
    felt = """
import os, pathlib, signal
def fails(error, work):
    try:
        work()
    except error:
        return True
    return False
path = pathlib.Path("file")
path.write_text("x", encoding="utf-8")
def importing():
    import resource
assert fails(ImportError, importing)
assert fails(AttributeError, lambda: os.killpg) and fails(AttributeError, lambda: signal.SIGHUP)
with path.open("rb") as file:
    assert fails(OSError, lambda: os.fsync(file.fileno()))
    assert fails(PermissionError, lambda: os.replace("file", "other")) and fails(PermissionError, path.unlink)
assert fails(OSError, lambda: pathlib.Path("a:b").write_text("x", encoding="utf-8"))
assert fails(OSError, lambda: pathlib.Path("/proc/self/status").read_text(encoding="utf-8"))
path.unlink()
"""
    subprocess.run([sys.executable, "-c", felt], env=lacking(tmp_path, *lacks.LACKS), check=True, cwd=tmp_path)


def test_a_file_in_use_is_replaced_when_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    real, refusals = Path.replace, [PermissionError(), PermissionError()]

    def replace(self: Path, other: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return real(self, other)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(system, "_POSIX", False)
    system.replace(source, target)
    assert target.read_bytes() == b"new"
    assert not source.exists()


@pytest.mark.parametrize("name", ["a:b", "what?", "x*", "con", "NUL.txt", "end.", "end ", 'say "a"', "com1"])
def test_names_that_windows_refuses_are_refused_there_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not system.name_problem(name)
    monkeypatch.setattr(system, "_POSIX", False)
    assert "Windows" in system.name_problem(name)
    assert not system.name_problem(f"console-{name[:1]}-x")


def test_commands_to_paste_fit_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.shell_command("mkdir -p", Path("a b")) == "mkdir -p 'a b'"
    monkeypatch.setattr(system, "_POSIX", False)
    assert system.shell_command("mkdir -p", Path("a b")) == 'mkdir "a b"'
    assert system.shell_command("rm", Path("a"), Path("b c")) == 'del a "b c"'


def test_quotes_that_cmd_leaves_are_taken_off() -> None:
    """cmd of Windows hands 'key=value' on with its quotes, and cuts it at spaces."""
    assert quote(["'data.files=[a.de,b.en]'", "'input=a.txt'"]) == quote(["data.files=[a.de,b.en]", "input=a.txt"])
    with pytest.raises(UserError, match="double quotes"):
        quote(["'input=my", "file.txt'"])
