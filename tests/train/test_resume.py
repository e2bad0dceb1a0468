"""Going on with a run: exactly where it stopped, or with a message that says why not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nmt.runs.run import Run
from nmt.runs.versions import code_revision
from nmt.system.locks import is_locked
from nmt.system.signals import stop_signals
from nmt.training.checkpoint import load_state
from nmt.training.loop import TrainingLoop
from tests.catalogue import thinned
from tests.small import Capture, call, copied, environment, refusal, same, snapshot, start, weights, words


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGTERM) -> None:
    """Sends this process a signal while it trains, as soon as `step` updates are made."""
    update = TrainingLoop._update

    def then_stop(self: TrainingLoop, *arguments: object) -> None:
        update(self, *arguments)  # type: ignore[arg-type]
        if self.counters.step == step:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(TrainingLoop, "_update", then_stop)


def course(run: Path) -> list[tuple[float, ...]]:
    """The validations without their times."""
    times = ("minutes", "train_tokens_per_second")
    return [tuple(value for key, value in entry.items() if key not in times) for entry in Run(run).history()]


@pytest.mark.parametrize(
    "case",
    thinned(
        [
            (["trainer.steps=20", "trainer.validate_every=7"], 5),
            (["trainer.epochs=2.5", "schedule=inverse_sqrt"], 8),  # an epoch has 8 batches
            (["trainer.epochs=2", "trainer.accumulate=3", "trainer.simcut=3"], 4),
            (["trainer.epochs=2", "tokenizer.sampling=0.3"], 13),
            (["trainer.steps=15", "trainer.scheduled_sampling=0.5", "trainer.average=none", "decoder=none"], 11),
            (["trainer.steps=12", "attention/read=hard", "attention.coverage=true", "attention/window=local_p"], 5),
            (["trainer.steps=15", "trainer.average=checkpoints", "trainer.validate_every=3"], 10),
            (["trainer.steps=12", "trainer.validate_every=2", "trainer.patience=1", "optimizer.lr=0"], 3),
            (["trainer.steps=10", "encoder=transformer", "decoder=transformer", "encoder/positions=learned"], 4),
            (["trainer.steps=10", "encoder=conv", "decoder=conv", "attention/score=dot"], 4),
            (["trainer.steps=10", "decoder.layers=2", "decoder.multi_step=true"], 6),
            (["trainer.steps=10", "data.documents=blank", "context.sentences=1"], 6),
        ],
        3,
    ),
    ids=lambda case: " ".join(case[0]),
)
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    case: tuple[list[str], int], here: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    settings, step = case
    number = stop_signals()[step % len(stop_signals())]
    line = words(text, here, "model.dropout=0.2", *settings)
    assert call("train", *line, "name=whole") == 0
    with monkeypatch.context() as patch:
        interrupt_at(step, patch, number)
        assert call("train", *line, "name=parts") == 128 + number
    err = capfd.readouterr().err
    assert f"Stopped by {number.name} at step {step}; everything is saved." in err
    assert f"nmt.train name=parts checkpoints={here} resume=true" in err
    known = Run(here / "parts").facts()
    assert (known["status"], known["finished_by"], known["step"]) == ("interrupted", number.name, step)
    if "optimizer.lr=0" not in settings:
        assert not same(here / "parts" / "last.safetensors", here / "whole" / "last.safetensors")
    assert call("train", "name=parts", f"checkpoints={here}", "resume=true") == 0
    assert course(here / "parts") == course(here / "whole")
    for name in ("last.safetensors", "best.safetensors"):
        assert same(here / "parts" / name, here / "whole" / name), name
    ours, theirs = Run(here / "parts").facts(), Run(here / "whole").facts()
    assert [ours[key] for key in ("status", "step", "finished_by")] == [
        theirs[key] for key in ("status", "step", "finished_by")
    ]


@pytest.mark.long
def test_a_signal_saves_and_says_how_to_go_on(here: Path, text: Path, capfd: Capture) -> None:
    number = signal.SIGINT
    line = words(text, here, "name=a", "trainer.steps=1000000", "trainer.average=checkpoints")
    program = start("train", *line, cwd=here)
    assert program.stderr is not None
    while b"Expected time" not in program.stderr.readline():
        assert program.poll() is None
    program.send_signal(number)
    out, err = program.communicate(timeout=600)
    assert (program.returncode, out) == (128 + number, b"")
    assert f"Stopped by {number.name}".encode() in err
    assert f"name=a checkpoints={here} resume=true".encode() in err
    assert b"Traceback" not in err
    step = int(str(Run(here / "a").facts()["step"]))
    assert call("train", "name=a", f"checkpoints={here}", "resume=true", f"trainer.steps={step + 2}") == 0
    assert Run(here / "a").facts()["step"] == step + 2
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
def test_a_closed_terminal_saves_the_run(here: Path, text: Path) -> None:
    """It sends SIGHUP, and no message can be written any more."""
    line = words(text, here, "name=a", "trainer.steps=1000000", "trainer.log_seconds=0")
    terminal = "import pty, sys; pty.spawn(sys.argv[1:])"
    program = subprocess.Popen(
        [sys.executable, "-c", terminal, sys.executable, "-m", "nmt.train", *line],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert program.stdout is not None
    while b"Expected time" not in program.stdout.readline():
        assert program.poll() is None
    program.kill()
    program.communicate()
    while is_locked(here / "a"):
        time.sleep(0.05)
    facts = Run(here / "a").facts()
    assert (facts["status"], facts["finished_by"]) == ("interrupted", "SIGHUP")
    assert load_state(here / "a" / "trainer.pt")["step"] == facts["step"]
    assert "everything is saved" in (here / "a" / "train.log").read_text(encoding="utf-8")


@pytest.mark.long
def test_an_ignored_signal_does_not_end_a_training(here: Path, text: Path) -> None:
    """As under nohup."""
    line = words(text, here, "name=a", "trainer.steps=300", "trainer.validate_every=20")
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-m", "nmt.train", *line]
    program = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
    assert program.stderr is not None
    while b"valid ppl" not in program.stderr.readline():
        assert program.poll() is None
    program.send_signal(signal.SIGHUP)
    _, err = program.communicate(timeout=600)
    assert program.returncode == 0, err
    assert Run(here / "a").facts()["step"] == 300


@pytest.mark.long
def test_a_training_goes_on_without_a_reader_of_its_messages(here: Path, text: Path) -> None:
    program = start("train", *words(text, here, "name=a", "trainer.steps=30", "trainer.validate_every=5"), cwd=here)
    assert program.stderr is not None
    program.stderr.readline()
    program.stderr.close()
    program.stderr = None
    program.communicate(timeout=600)
    assert program.returncode == 0
    assert Run(here / "a").facts()["step"] == 30


def test_a_larger_budget_goes_on_from_the_end(here: Path, text: Path, trained: Path) -> None:
    run = copied(trained, here)
    before = Run(run).history()
    Run(run).note(code=["0123456789ab"])  # another program trained it until now
    assert call("train", "name=numbers", f"checkpoints={here}", "resume=true", "trainer.steps=202") == 0
    assert Run(run).facts()["step"] == 202
    assert Run(run).facts()["code"] == ["0123456789ab", code_revision()]
    assert Run(run).history()[: len(before)] == before
    assert Run(run).config().trainer.steps == 202
    assert Run(run).config().checkpoints == str(here)
    assert not same(run / "last.safetensors", trained / "last.safetensors")


def test_a_finished_run_says_so(here: Path, run: Path, capfd: Capture) -> None:
    before = snapshot(here)
    assert call("train", "name=numbers", f"checkpoints={here}", "resume=true") == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"{run} is already finished: trainer.steps=200 is reached. To train longer, raise it: " \
        "trainer.steps=400.\n"  # fmt: skip
    assert call("train", "name=numbers", f"checkpoints={here}", "resume=true", "trainer.steps=150") == 0
    assert "already finished" in capfd.readouterr().err
    assert snapshot(here) == before


def test_auto_begins_a_run_and_resumes_it(here: Path, text: Path) -> None:
    for step in (2, 3):
        assert call("train", *words(text, here, "name=new", "resume=auto", f"trainer.steps={step}")) == 0
        assert Run(here / "new").facts()["step"] == step


def test_a_misspelt_run_is_not_begun(here: Path, trained: Path, capfd: Capture) -> None:
    copied(trained, here)
    message = refusal(capfd, here, "train", "name=nmubers", f"checkpoints={here}", "resume=true")
    assert f"There is no run {here / 'nmubers'}. Did you mean 'numbers'? {here} has numbers." in message
    assert "To train a new run, leave out resume=true or give resume=auto." in message
    message = refusal(capfd, here, "train", "name=a", f"checkpoints={here / 'new'}", "resume=true")
    assert f"There is no run {here / 'new' / 'a'}." in message
    assert "resume=maybe: must be true, auto or false." in refusal(capfd, here, "train", "name=a", "resume=maybe")


def test_killed_before_the_first_save_starts_from_the_beginning(
    here: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    line = words(text, here, "trainer.steps=4")
    assert call("train", *line, "name=whole") == 0

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "run", die)
        assert call("train", *line, "name=a") == 130
    assert Run(here / "a").facts()["status"] == "running"
    assert call("train", "name=a", f"checkpoints={here}", "resume=true") == 0
    assert "starts from the beginning" in capfd.readouterr().err
    assert same(here / "a" / "last.safetensors", here / "whole" / "last.safetensors")


def test_validations_after_the_last_save_are_made_again(
    here: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = words(text, here, "trainer.steps=9", "trainer.validate_every=3")
    assert call("train", *line, "name=whole") == 0
    save = TrainingLoop._save

    def die_at_six(self: TrainingLoop) -> None:
        if self.counters.step == 6:
            raise KeyboardInterrupt
        save(self)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "_save", die_at_six)
        assert call("train", *line, "name=a") == 130
    assert [step for step, *_ in course(here / "a")] == [3, 6]
    assert call("train", "name=a", f"checkpoints={here}", "resume=true") == 0
    assert course(here / "a") == course(here / "whole")
    assert same(here / "a" / "best.safetensors", here / "whole" / "best.safetensors")


def test_a_text_that_has_changed_is_refused(here: Path, text: Path, capfd: Capture) -> None:
    for name in ("train.de", "train.en"):
        (here / name).write_bytes((text / name).read_bytes())
    line = words(text, here / "runs", "name=a", "trainer.steps=2", f"data.train={here / 'train'}")
    assert call("train", *line) == 0
    for name in ("train.de", "train.en"):
        with (here / name).open("a", encoding="utf-8") as file:
            file.write("eins\n")
    assert call("train", *line, "resume=true", "trainer.steps=3") == 1
    assert "The text of train has changed since" in capfd.readouterr().err
    assert Run(here / "runs" / "a").facts()["step"] == 2


def test_what_is_saved_runs_no_code_when_it_is_read(trained: Path) -> None:
    torch.load(trained / "trainer.pt", weights_only=True)
    assert weights(trained / "last.safetensors").keys() == weights(trained / "best.safetensors").keys()
