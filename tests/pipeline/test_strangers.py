"""Runs that strangers have made: attempts to read and write outside the run's folder, and to take time and memory."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from nmt.errors import UserError
from nmt.foreign import inside
from nmt.records import record
from nmt.runs import Run
from tests.pipeline.small import call, copied, write_lines
from tests.pipeline.test_mistakes import Capture, refusal


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
def test_no_link_is_followed(verb: str, name: str, here: Path, trained: Path, capfd: Capture) -> None:
    run = copied(trained, here)
    line = asked(verb, run)
    linked(run / name)
    message = refusal(capfd, here, verb, *line)
    assert f"{run / name} is a symbolic link, which a run never has" in message


def test_a_pipe_in_a_run_keeps_nobody_waiting(here: Path, trained: Path, capfd: Capture) -> None:
    run = copied(trained, here)
    line = asked("translate", run)
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    assert "run.json is a pipe, a socket or a device" in refusal(capfd, here, "translate", *line)


def test_a_link_to_a_whole_run_is_the_users_own(here: Path, trained: Path) -> None:
    (here / "mine").symlink_to(trained)
    assert call("translate", *asked("translate", here / "mine"), f"output={here / 'out.txt'}") == 0
    assert (here / "out.txt").exists()


def test_nothing_is_recorded_through_links(here: Path, trained: Path) -> None:
    """`nmt.compare records=` copies files of runs."""
    run = copied(trained, here)
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
def test_names_stay_in_the_run(split: str, here: Path, trained: Path) -> None:
    run = copied(trained, here)
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


def test_a_split_cannot_be_called_like_a_place_outside(here: Path, trained: Path, capfd: Capture) -> None:
    """The results of a split go into a folder of its name."""
    import datasets  # type: ignore[import-untyped]

    run = copied(trained, here)
    table = datasets.Dataset.from_dict({"de": ["eins", "zwei"], "en": ["one", "two"]})
    saved = run / "a" / "b" / "saved"
    datasets.DatasetDict(dict.fromkeys(("train", "validation", "test"), table)).save_to_disk(str(saved))
    shutil.move(saved / "test", run / "test-OUTSIDE")
    splits = ["train", "validation", "test/../../../../test-OUTSIDE"]
    (saved / "test").mkdir()
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": splits}))
    with_hub(run, saved)
    message = refusal(capfd, here, "evaluate", f"run={run}", "pictures=0")
    assert "is not a valid folder name" in message


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


BOMB = "a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("verb", "name", "content", "part"),
    [
        ("translate", "run.json", nested(100_000), "run.json is damaged"),
        ("train", "overrides.json", nested(100_000), "overrides.json is damaged"),
        ("train", "history.jsonl", nested(100_000), "history.jsonl is damaged"),
        ("translate", "run.json", f'{{"step": {"9" * 10_000}}}', "run.json is damaged"),
        ("translate", "config.yaml", nested(5_000), "config.yaml is damaged"),
        ("translate", "config.yaml", nested(60), "config.yaml is damaged"),
        ("translate", "config.yaml", "data: " + "{a: " * 400 + "}" * 400, "config.yaml is damaged"),
        ("translate", "config.yaml", BOMB, "config.yaml is damaged"),
        ("translate", "config.yaml", "a: &a [*a]\n", "config.yaml is damaged"),
        ("translate", "config.yaml", "a: " + "0" * 300_000, "it has more than 262,144 bytes"),
    ],
    ids=range(10),
)
def test_no_file_takes_long_to_refuse(
    verb: str, name: str, content: str, part: str, here: Path, trained: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    line = asked(verb, run)
    (run / name).write_text(content)
    assert part in refusal(capfd, here, verb, *line)
