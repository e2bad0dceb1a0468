"""A sweep: a run for each combination, failures that stop nothing else, and going on where it stopped."""

import io
import os
import re
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from nmt.config.combinations import expand
from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.locks import SWEEP, locked
from nmt.train.sweep import _names
from nmt.train.workers import Failure, Launcher, Planned
from tests.small import Capture, call, snapshot, words

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def sweep(text: Path, checkpoints: Path, *more: str) -> int:
    return call("train", "-m", *words(text, checkpoints, "name=s", "trainer.steps=3", *more))


# Names


def test_names_are_made_of_the_values_with_the_seed_last() -> None:
    line = ["seed=1,2", "attention/score=additive,scaled_dot", "decoder=bahdanau"]
    swept = [own.swept for own in expand("train", line)]
    assert _names(swept) == ["additive-1", "scaled_dot-1", "additive-2", "scaled_dot-2"]
    assert _names([{"seed": "1"}, {"seed": "2"}]) == ["seed-1", "seed-2"]
    assert _names([{"seed": "1"}], "none") == ["none-1"]


def test_names_stay_apart_and_safe_whatever_the_values() -> None:
    values = ["a b", "a/b", "a-b", "$(x)", "../..", "数据", "x" * 300, "x" * 301]
    names = _names([{"data.root": value} for value in values])
    assert len(set(names)) == len(values)
    for name in names:
        assert shlex.quote(name) == name
        assert len(name) < 120
        assert name not in (".", "..")
    # A name depends on its own values alone: a longer sweep finds the runs of a shorter one again.
    assert _names([{"data.root": "a b"}]) == names[:1]


# The grammar


def test_settings_of_sweeps_want_their_option() -> None:
    with pytest.raises(UserError, match=r"jobs is a setting of sweeps: python -m nmt\.train -m jobs=2"):
        compose("train", ["jobs=2"])


def test_every_kind_of_sweep_is_expanded() -> None:
    def values(*line: str) -> list[dict[str, str]]:
        return [own.swept for own in expand("train", line)]

    assert values("seed=range(1,4)") == [{"seed": "1"}, {"seed": "2"}, {"seed": "3"}]
    assert values("decoder=choice(luong,none)") == [{"decoder": "luong"}, {"decoder": "none"}]
    assert {own["attention/score"] for own in values("attention/score=glob(*)")} >= {"additive", "dot", "general"}
    assert values("data.target=de,'f,r'") == [{"data.target": "de"}, {"data.target": "f,r"}]
    assert values("data.files=[a,b]", "seed=1,2,1") == [{"seed": "1"}, {"seed": "2"}]
    assert values("trainer.minutes=null,2", "seed=1") == [{"trainer.minutes": "null"}, {"trainer.minutes": "2"}]
    assert values("seed=1,2", "seed=3") == [{}]
    product = expand("train", ["decoder=luong,none", "encoder.layers=1,2", "name=x"])
    assert [own.overrides for own in product][1] == ["decoder=luong", "encoder.layers=2", "name='x'"]
    assert len(product) == 4
    with pytest.raises(UserError, match="is an interval"):
        values("optimizer.lr=interval(0,1)")
    with pytest.raises(UserError, match="no choice matches"):
        values("attention/score=glob(nothing*)")


# What is refused before anything starts


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["seed=1,2"], ["-m needs a name for the sweep: name=SWEEP"]),
        (["name=s", "seed=1"], ["-m needs a key with several values", "leave out -m"]),
        (["name=s", "resume=true,false"], ["resume= must have one value in a sweep", "Give one value."]),
        (["name=s,r", "seed=1,2"], ["name= must have one value in a sweep", "quote the comma: \"name='A,B'\""]),
        (["name=s", "checkpoints=a,b", "seed=1,2"], ["checkpoints= must have one value in a sweep"]),
        (
            ["name=s", "attention/score=additive,dott"],
            ["There is no attention/score=dott", "'dot'", "nothing was started"],
        ),
        (["name=s", "decoder=luong,none", "decoder.input_feeding=true"], ["decoder.input_feeding", "In the run none"]),
        (["name=s", "seed=1,2", "jobs=-1"], ["jobs=-1: must be"]),
        (["name=s", "seed=1,2", "jobs=many"], ["jobs=many: must be a whole number"]),
        (["name=s", "seed=1,2", "dry_run=maybe"], ["dry_run=maybe: must be true or false"]),
        (["name=../s", "seed=1,2"], ["not a valid folder name"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes_start_nothing(line: list[str], parts: list[str], here: Path, capfd: Capture) -> None:
    assert call("train", "-m", *line) == 1
    out, err = capfd.readouterr()
    assert out == ""
    for part in parts:
        assert part in err
    assert list(here.iterdir()) == []


def test_only_training_is_swept(here: Path, capfd: Capture) -> None:
    assert call("evaluate", "-m", "run=a,b") == 1
    assert "only nmt.train runs sweeps" in capfd.readouterr().err
    assert call("train", "seed=1,2") == 1
    assert "add -m and name=SWEEP" in capfd.readouterr().err


# The plan


def test_a_dry_run_prints_what_a_cluster_can_run(text: Path, here: Path, capfd: Capture) -> None:
    line = ["encoder.size=10", "attention/score=additive,dot", "decoder=bahdanau,none", "jobs=2", "dry_run=true"]
    assert sweep(text, here / "c c", *line) == 1
    out, err = capfd.readouterr()
    commands = [shlex.split(command) for command in out.splitlines()]
    names = [next(word for word in command if word.startswith("name=")) for command in commands]
    # dot cannot compare 32 with 20; without attention the score is no difference.
    assert names == ["name=additive-bahdanau", "name=additive-none"]
    assert '"\'"' not in out, "words are quoted once, for the shell"
    assert err.count("dot-bahdanau") == 1
    assert "dot-bahdanau cannot be trained: " in err
    assert "decoder.size=20" in err
    assert "dot-none is skipped: it would be the same run as additive-none" in err
    for command in commands:
        assert command[1:3] == ["-m", "nmt.train"]
        config = compose("train", quote(command[3:]))
        assert config.checkpoints == str(here / "c c" / "s")
        assert config.resume == "auto"
        assert config.threads == 1
    assert list(here.iterdir()) == []
    # Without threads= each run takes its share of the cores.
    assert call("train", "-m", "name=s", "seed=1,2", "jobs=2", "dry_run=true") == 0
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    assert all(command.endswith(f" threads={share}") for command in capfd.readouterr().out.splitlines())


# A sweep that trains


def test_one_failure_ends_nothing_else_and_a_second_sending_skips_what_is_done(
    text: Path, here: Path, capfd: Capture
) -> None:
    line = ["trainer.max_source_length=1,50", "jobs=1"]  # no sentence is one piece long
    assert sweep(text, here, *line) == 1
    out, err = capfd.readouterr()
    assert out == ""
    log = here / "s" / "max_source_length-1.log"
    assert f"2 runs in {here / 's'}: 1 finished, 1 failed." in err
    last = err.splitlines()[-1]
    assert last.startswith("failed: max_source_length-1: The valid set is empty")
    assert last.endswith(f"(see {log})")
    assert "The valid set is empty" in log.read_text(encoding="utf-8")
    assert not (here / "s" / "max_source_length-1").exists()
    done = Run(here / "s" / "max_source_length-50")
    assert done.facts()["status"] == "finished"
    assert done.facts()["peak_memory"] > 50e6
    assert done.history()[-1]["train_tokens_per_second"] > 0
    assert "step 3" in (here / "s" / "max_source_length-50.log").read_text(encoding="utf-8")
    # Sent again: only what is not finished is tried.
    before = snapshot(done.folder)
    assert sweep(text, here, "trainer.max_source_length=50") == 1, "one value is no sweep"
    capfd.readouterr()
    assert sweep(text, here, *line, "dry_run=true") == 0
    out, err = capfd.readouterr()
    assert [line for line in out.splitlines() if "max_source_length-50" in line] == []
    assert "1 of 2 runs are already finished" in err
    assert snapshot(done.folder) == before
    # A larger budget is something to do; another model under the same name is refused, and named.
    assert sweep(text, here, "trainer.max_source_length=50,40", "trainer.steps=5", "dry_run=true") == 0
    assert "max_source_length-50" in capfd.readouterr().out
    assert sweep(text, here, "trainer.max_source_length=50,40", "encoder.size=12", "dry_run=true") == 1
    assert "encoder.size: 16 -> 12" in capfd.readouterr().err


def test_a_run_that_cannot_begin_ends_nothing_else(text: Path, here: Path, capfd: Capture) -> None:
    (here / "s" / "seed-2.log").mkdir(parents=True)
    assert sweep(text, here, "seed=1,2", "jobs=2") == 1
    assert "seed-2: Cannot write" in capfd.readouterr().err.splitlines()[-1]
    assert Run(here / "s" / "seed-1").facts()["status"] == "finished"


class Gone(io.StringIO):
    """A standard error that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_runs_are_saved_when_nobody_listens(text: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`2>&1 | tee` dies of the same Ctrl-C."""
    monkeypatch.setattr(sys, "stderr", Gone())
    stopped_sweep(text, here)
    assert Run(here / "s" / "seed-1").facts()["status"] == "interrupted"


def stopped_sweep(text: Path, here: Path) -> None:
    """Sends this process SIGTERM once the first training of a sweep has validated."""
    log = here / "s" / "seed-1.log"

    def stop_when_it_trains() -> None:
        for _ in range(9000):
            if log.exists() and b"valid ppl" in log.read_bytes():
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop_when_it_trains)
    watcher.start()
    assert sweep(text, here, "seed=1,2", "trainer.steps=1000000", "trainer.validate_every=1", "jobs=1") == 143
    watcher.join()


def test_one_process_runs_a_sweep(text: Path, here: Path, capfd: Capture) -> None:
    """The second is refused before it composes, trains or writes anything; a dry run only prints."""
    with locked(here / "s", SWEEP):
        assert sweep(text, here, "seed=1,2") == 1
        message = rf"nmt\.train: {here}/s: another process is running this sweep \(process {os.getpid()} on .*\)\. Wait"
        assert re.match(message, capfd.readouterr().err)
        assert [path.name for path in here.iterdir()] == [".s.lock"]
        assert sweep(text, here, "seed=1,2", "dry_run=true") == 0


def test_a_signal_stops_every_run_with_its_state_saved(text: Path, here: Path, capfd: Capture) -> None:
    stopped_sweep(text, here)
    err = capfd.readouterr().err
    assert "SIGTERM: the runs save their state and stop." in err
    assert "2 runs in" in err
    assert "2 left to do" in err
    assert "failed" not in err
    run = Run(here / "s" / "seed-1")
    assert run.facts()["status"] == "interrupted"
    assert run.state.exists()
    assert not (here / "s" / "seed-2").exists()
    # A run that another process trains is left to it.
    with locked(run.folder):
        launcher = Launcher(here / "s", [Planned("seed-1", [])], 1)
        assert launcher.run() == 0
        assert launcher.failures == [Failure("seed-1", "another process is training it", here / "s" / "seed-1.log")]
