"""Exit status, streams, and what --help and --cfg print."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from nmt.config import configuration
from nmt.config import program as running
from nmt.config.program import main
from nmt.system.errors import UserError, reading


def answer(config: DictConfig, overrides: list[str]) -> int:
    print(config.name, overrides)
    return 3


def raiser(error: BaseException) -> Callable[[DictConfig, list[str]], None]:
    def action(config: DictConfig, overrides: list[str]) -> None:
        del config, overrides
        raise error

    return action


def test_the_action_gets_the_configuration_and_the_overrides(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("train", answer, ["name=a b"]) == 3
    assert capfd.readouterr() == ("a b [\"name='a b'\"]\n", "")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UserError("no such thing"), 1, "nmt.train: no such thing\n"),
        (KeyboardInterrupt(), 130, "nmt.train: interrupted\n"),
        (PermissionError(13, "Permission denied", "f.txt"), 1, "nmt.train: Permission denied (f.txt).\n"),
        (OSError(28, "No space left on device"), 1, "nmt.train: No space left on device. Free some space"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (torch.OutOfMemoryError("CUDA out of memory."), 1, "nmt.train: not enough memory on the GPU. Give a smaller"),
        (RuntimeError("alloc_cpu.cpp:125] . DefaultCPUAllocator: can't"), 1, "nmt.train: not enough memory. Give a"),
        (MemoryError(), 1, "nmt.train: not enough memory. Give a smaller trainer.tokens_per_batch"),
        (ModuleNotFoundError("no", name="datasets.load"), 1, "nmt.train: the Python package datasets is not installed"),
        (
            RuntimeError("cumsum_cuda_kernel does not have a deterministic implementation, but you set ..."),
            1,
            "nmt.train: deterministic=true: cumsum_cuda_kernel does not have a deterministic implementation. Give",
        ),
    ],
)
def test_a_failure_is_one_message(
    error: BaseException,
    status: int,
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "drop", lambda _: None)
    assert main("train", raiser(error), []) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


def test_what_must_be_given_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("translate", answer, ["input=x"]) == 1
    assert capfd.readouterr().err.startswith("nmt.translate: run= must be given. For example: python -m nmt.translate")


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), RuntimeError("shape"), ModuleNotFoundError("no", name="nmt.x"), OSError(9, "bad")]
)
def test_a_fault_of_the_program_keeps_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)):
        main("train", raiser(error), [])


@pytest.mark.parametrize("package", ["hydra", "omegaconf"])
def test_a_missing_package_is_one_message(package: str) -> None:
    without = f"import sys; sys.modules['{package}'] = None; from nmt.verbs import run; sys.exit(run('train', ['a=1']))"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"nmt.train: the Python package {package} is not installed for {sys.executable}.")
    assert len(ended.stderr.splitlines()) == 1


def test_full_memory_is_no_damage() -> None:
    with pytest.raises(torch.OutOfMemoryError), reading(Path("model")):
        raise torch.OutOfMemoryError("CUDA out of memory.")


@pytest.mark.parametrize(("words", "setting"), [(["debug=true"], ""), ([], "1")])
def test_debugging_shows_what_is_behind_a_message(
    words: list[str], setting: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def action(config: DictConfig, overrides: list[str]) -> None:
        del config
        assert overrides == []
        try:
            raise ZeroDivisionError("division by zero")
        except ZeroDivisionError as error:
            raise UserError("no such thing") from error

    monkeypatch.setenv("NMT_DEBUG", setting)
    assert main("train", action, words) == 1
    err = capfd.readouterr().err
    assert err.index("ZeroDivisionError: division by zero") < err.index("nmt.train: no such thing")
    assert "in action" in err
    assert main("train", action, ["debug=false"]) == 1
    assert capfd.readouterr().err == "nmt.train: no such thing\n"
    assert main("train", action, ["debug=yes"]) == 1
    assert capfd.readouterr().err == "nmt.train: debug=yes: must be true or false.\n"


def test_cfg_prints_the_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("train", answer, ["--cfg", "job", "encoder.size=64"]) == 0
    assert OmegaConf.create(capfd.readouterr().out).encoder.size == 64
    assert main("train", answer, ["--version"]) == 0
    assert capfd.readouterr().out.startswith("nmt ")


PROGRAM = """
import sys
from pathlib import Path
from nmt.config import configuration
from nmt.config.program import main
configuration.config_folder = lambda: Path({folder!r})
def action(config, overrides):
    for number in range(100_000):
        print(number)
status = main("train", action, sys.argv[1:])
assert "torch" not in sys.modules
sys.exit(status)
"""


def run_program(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(folder=str(folder))
    return subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(Path(configuration.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_stops_ends_it_quietly(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" | head -n 1; echo ${PIPESTATUS[0]}')
    assert (done.stdout, done.stderr) == ("0\n0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" > /dev/full')
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_imports_no_torch(tree: Path) -> None:
    done = run_program(tree, '"$1" -c "$2" --help')
    assert (done.returncode, done.stderr) == (0, "")
