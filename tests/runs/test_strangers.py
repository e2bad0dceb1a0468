"""Runs that strangers have made: attempts to read and write outside the run's folder, and to take time and memory."""

import json
import os
import shlex
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from nmt.runs.records import record
from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.foreign import inside
from tests.small import Capture, call, copied, refusal, words, write_lines

pytestmark = pytest.mark.long


def asked(verb: str, run: Path) -> list[str]:
    """What somebody who was given a run does with it."""
    if verb == "train":
        return [f"name={run.name}", f"checkpoints={run.parent}", "resume=true", "trainer.steps=100000"]
    if verb == "translate":
        write_lines(run.parent / "in.txt", ["eins"])
        return [f"run={run}", f"input={run.parent / 'in.txt'}"]
    return [f"run={run}"]


def linked(path: Path) -> None:
    """Moves a file or a folder out of the run, and leaves a link; what does not exist is made."""
    outside = next(parent for parent in path.parents if (parent / "config.yaml").exists()).parent / "outside"
    outside.mkdir()
    if path.exists():
        shutil.move(path, outside / path.name)
    else:
        (outside / path.name).mkdir()
        path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside / path.name)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("train", "train.log"),
        ("train", "tensorboard"),
        ("train", "history.jsonl"),
        ("train", "overrides.json"),
        ("train", "trainer.pt"),
        ("evaluate", "evaluation"),
        ("evaluate", "evaluation/test"),
        ("evaluate", "evaluation/test/heatmaps"),
        ("evaluate", "run.json"),
        ("align", "alignments"),
        ("translate", "config.yaml"),
        ("translate", "best.safetensors"),
        ("translate", "tokenizer"),
        ("translate", "tokenizer/tokenizer.model"),
    ],
)
def test_no_link_is_followed(verb: str, name: str, here: Path, run: Path, capfd: Capture) -> None:
    line = asked(verb, run)
    linked(run / name)
    message = refusal(capfd, here, verb, *line)
    assert f"{run / name} is a symbolic link, which a run never has" in message


def test_a_pipe_in_a_run_keeps_nobody_waiting(here: Path, run: Path, capfd: Capture) -> None:
    line = asked("translate", run)
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    assert "run.json is a pipe, a socket or a device" in refusal(capfd, here, "translate", *line)


def test_a_link_to_a_whole_run_is_the_users_own(here: Path, trained: Path) -> None:
    (here / "mine").symlink_to(trained)
    assert call("translate", *asked("translate", here / "mine"), f"output={here / 'out.txt'}") == 0
    assert (here / "out.txt").exists()


def test_nothing_is_recorded_through_links(here: Path, run: Path) -> None:
    """`nmt.compare records=` copies files of runs."""
    (run / "evaluation" / "test").mkdir(parents=True, exist_ok=True)
    (run / "evaluation" / "test" / "scores.json").write_text("{}")
    write_lines(here / "secret", ["nobody's business"])
    (run / "evaluation" / "test" / "hypotheses.txt").symlink_to(here / "secret")
    with pytest.raises(UserError, match=r"hypotheses\.txt is a symbolic link"):
        record(Run(run), here / "record")
    assert not (here / "record").exists()


def test_nothing_is_recorded_into_links(here: Path, trained: Path) -> None:
    target = here / "record"
    target.mkdir()
    (here / "outside").mkdir()
    (target / "evaluation").symlink_to(here / "outside")
    with pytest.raises(UserError, match="evaluation is a symbolic link"):
        record(Run(trained), target)
    assert list((here / "outside").iterdir()) == []


@pytest.mark.parametrize("split", ["../../OUTSIDE", "/tmp/OUTSIDE", "..", ".", "", "a//b", "a/../../b", "x\0y"])
def test_names_stay_in_the_run(split: str, here: Path, run: Path) -> None:
    (here / "OUTSIDE").mkdir()
    (here / "OUTSIDE" / "scores.json").write_text("{}")
    with pytest.raises(UserError, match=r"leaves this folder\. Do not use this run"):
        Run(run).scores(split)
    with pytest.raises(UserError, match="leaves this folder"):
        inside(run / "evaluation", split)


def configured(run: Path, change: Callable[[Any], object]) -> None:
    """Changes the configuration of a run."""
    config = OmegaConf.load(run / "config.yaml")
    change(config)
    (run / "config.yaml").write_text(OmegaConf.to_yaml(config), encoding="utf-8")


def with_hub(run: Path, path: Path | str) -> None:
    """Makes a run's data set one of the Hub, or a folder in its format."""
    data: dict[str, Any] = {"path": str(path), "name": None, "source": "de", "target": "en", "train": "train"}
    data |= {"valid": None, "test": None, "source_column": None, "target_column": None}
    data |= {"valid_pairs": None, "test_pairs": None, "revision": None, "seed": 1}

    def change(config: Any) -> None:
        config.data, config.choices["data"] = data, "hub"

    configured(run, change)


def test_a_split_cannot_be_called_like_a_place_outside(here: Path, run: Path, capfd: Capture) -> None:
    """The results of a split go into a folder of its name."""
    import datasets  # type: ignore[import-untyped]

    table = datasets.Dataset.from_dict({"de": ["eins", "zwei"], "en": ["one", "two"]})
    saved = run / "a" / "b" / "saved"
    datasets.DatasetDict(dict.fromkeys(("train", "validation", "test"), table)).save_to_disk(str(saved))
    shutil.move(saved / "test", run / "test-OUTSIDE")
    splits = ["train", "validation", "test/../../../../test-OUTSIDE"]
    (saved / "test").mkdir()
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": splits}))
    with_hub(run, saved)
    message = refusal(capfd, here, "evaluate", f"run={run}", "pictures=0", "data=run")
    assert "is not a valid folder name" in message


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


BOMB = "a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("verb", "name", "content", "part"),
    [
        ("train", "overrides.json", nested(100_000), "overrides.json is damaged"),
        ("train", "history.jsonl", nested(100_000), "history.jsonl is damaged"),
        ("translate", "run.json", f'{{"step": {"9" * 10_000}}}', "run.json is damaged"),
        ("translate", "config.yaml", nested(5_000), "config.yaml is damaged"),
        ("translate", "config.yaml", "data: " + "{a: " * 400 + "}" * 400, "config.yaml is damaged"),
        ("translate", "config.yaml", BOMB, "config.yaml is damaged"),
        ("translate", "config.yaml", "a: &a [*a]\n", "config.yaml is damaged"),
        ("translate", "config.yaml", "a: " + "0" * 300_000, "it has more than 262,144 bytes"),
    ],
    ids=range(8),
)
def test_no_file_takes_long_to_refuse(
    verb: str, name: str, content: str, part: str, here: Path, run: Path, capfd: Capture
) -> None:
    line = asked(verb, run)
    (run / name).write_text(content)
    assert part in refusal(capfd, here, verb, *line)


def test_sizes_that_no_machine_holds_are_refused_before_memory_is_taken(
    here: Path, trained: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    config = run / "config.yaml"
    for key, value, part in (
        ("size: 16", "size: 160000000", "The model would have"),
        ("layers: 1", "layers: 1000000000", "layers=1000000000: must be from 1 to 1,000"),
    ):
        text = (trained / "config.yaml").read_text(encoding="utf-8")
        assert key in text
        config.write_text(text.replace(key, value), encoding="utf-8")
        line = asked("translate", run)
        assert part in refusal(capfd, here, "translate", *line)


# Data settings


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The addresses that this process has tried to reach; none is reached."""
    addresses: list[object] = []

    def connect(_: socket.socket, address: object) -> None:
        addresses.append(address)
        raise ConnectionRefusedError(address)

    def look_up(host: object, *_: object, **__: object) -> None:
        addresses.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "refused")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return addresses


NOT_USED = "made or changed elsewhere, so its data settings are not used: data="


@pytest.mark.parametrize(
    ("verb", "part"),
    [
        ("evaluate", f"{NOT_USED}hub data.path=attacker/x. Give files: source=FILE reference=FILE. If you"),
        ("align", f"{NOT_USED}hub data.path=attacker/x. Give files: source=FILE target=FILE. If you trust these"),
        ("contrast", f"{NOT_USED}hub data.path=attacker/x. Give files: source=FILE reference=FILE contrasts=FILE."),
        ("train", "If you trust them, repeat them on the command line: data=hub data.path=attacker/x"),
    ],
)
def test_a_run_reaches_no_network(
    verb: str, part: str, here: Path, run: Path, connections: list[object], capfd: Capture
) -> None:
    with_hub(run, "attacker/x")
    assert part in refusal(capfd, here, verb, *asked(verb, run))
    assert connections == []


def test_who_says_so_reaches_the_network(here: Path, run: Path, connections: list[object], capfd: Capture) -> None:
    with_hub(run, "attacker/x")
    refusal(capfd, here, "evaluate", f"run={run}", "data=run")
    assert connections


def test_a_run_copies_no_file_from_elsewhere(here: Path, run: Path, capfd: Capture) -> None:
    for language in ("de", "en"):
        write_lines(here / f"secret.{language}", ["nobody's business"])
    configured(run, lambda config: config.data.update({"test": [str(here / "secret")]}))
    message = refusal(capfd, here, "evaluate", f"run={run}", "pictures=0")
    assert f"'data.test=[{here / 'secret'}]'" in message
    assert call("evaluate", f"run={run}", "pictures=0", "data=run") == 0  # who reads the message decides
    assert (run / "evaluation" / "secret" / "source.txt").exists()


@pytest.mark.parametrize("name", ["config.yaml", "overrides.json"])
def test_whatever_changes_makes_a_run_a_strangers(name: str, here: Path, trained: Path) -> None:
    path = copied(trained, here) / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert not Run(path.parent).is_own()
    path.unlink()
    assert not Run(path.parent).is_own()


def test_a_run_of_another_user_is_a_strangers(here: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(here))
    assert not Run(trained).is_own()


def test_a_strangers_run_is_resumed_by_repeating_its_data(here: Path, run: Path, capfd: Capture) -> None:
    """With the user's folder for tokenised text; from then on it is the user's own."""
    (here / "outside").mkdir()
    configured(run, lambda config: config.update({"cache": str(here / "outside")}))
    line = [*asked("train", run)[:3], "trainer.steps=202", "device=cpu", "threads=1"]
    message = refusal(capfd, here, "train", *line)
    words = shlex.split(message.partition("command line: ")[2])
    assert words[0] == "data=text"
    assert call("train", *line, *words) == 0
    assert Run(run).facts()["step"] == 202
    assert list((here / "outside").iterdir()) == []
    assert Run(run).is_own()
    assert call("train", *line, "trainer.steps=203") == 0


@pytest.mark.parametrize(
    "word", ["data.train=${oc.env:SECRET}", "+hydra.searchpath=[file:///attacker]", "seed=${a.${oc.env:SECRET}}"]
)
def test_a_recorded_word_reads_nothing(word: str, here: Path, run: Path, capfd: Capture) -> None:
    words = json.loads((run / "overrides.json").read_text())
    (run / "overrides.json").write_text(json.dumps([*words, word]))
    message = refusal(capfd, here, "train", *asked("train", run))
    assert f"overrides.json has {word!r}, which reads the environment" in message


def test_built_in_data_are_anybodys_but_not_of_any_size(here: Path, run: Path, capfd: Capture) -> None:

    def change(config: Any) -> None:
        config.choices["data"] = "builtin"
        config.data = {"train_pairs": 10**12, "valid_pairs": 20, "test_pairs": 20}

    configured(run, change)
    assert "data.train_pairs=1000000000000" in refusal(capfd, here, "evaluate", f"run={run}", "pictures=0")
    configured(run, lambda config: config.data.update({"train_pairs": 600}))
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "text": {}}))
    assert call("evaluate", f"run={run}", "pictures=0", "split=valid") == 0


def test_a_home_that_cannot_be_written_hinders_no_training(
    text: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "file"))
    assert call("train", *words(text, here, "name=run", "trainer.steps=1")) == 0
    assert "warning: the state folder cannot be written" in capsys.readouterr().err
    assert not Run(here / "run").is_own()
