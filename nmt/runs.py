"""The run folder: what is written where, and reading a run back.

checkpoints/NAME/
  config.yaml         the resolved configuration
  overrides.json      the command line that made it, for resuming
  run.json            status, versions of libraries, what was counted
  tokenizer/          SentencePiece models
  best.safetensors    weights of the best validation       last.safetensors    of the last save
  lexicon.safetensors likely translations of each piece, for shortlist=
  trainer.pt          all that resuming takes (plain tensors)
  history.jsonl       one validation a line
  train.log           what was said on the way
  tensorboard/        curves, samples, attention pictures
  evaluation/SPLIT/   translations, scores, pictures
  alignments/         error rates against gold links, a file a gold
"""

import errno
import functools
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import UnionType
from typing import Any

from omegaconf import DictConfig, OmegaConf

from nmt import compat
from nmt.choices import place, with_classes
from nmt.configuration import INCIDENTAL, flattened, resolved, without_classes
from nmt.errors import UserError, damaged, nearest
from nmt.files import appearing, unwritable, write_json, write_text
from nmt.locks import lock_file
from nmt.text.tokenizer import Tokenizer

_FACTS: dict[str, type | UnionType] = {
    **dict.fromkeys(("step", "pairs"), int),
    **dict.fromkeys(("epochs", "minutes", "length_ratio"), int | float),
    "text": dict,
    "languages": list,
    "status": str,
}

LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "datasets", "hydra-core", "babel", "numpy", "safetensors")


@functools.lru_cache(maxsize=16)
def _tree(yaml: bytes) -> Any:
    """What a configuration holds: a verb reads that of its run several times."""
    return OmegaConf.to_container(OmegaConf.create(yaml.decode("utf-8")), resolve=False)


class TakenError(UserError):
    """The place of a new run is taken."""


class Run:
    """One run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.best = folder / "best.safetensors"  # weights of the best validation
        self.last = folder / "last.safetensors"  # of the last save
        self.state = folder / "trainer.pt"
        self.lexicon = folder / "lexicon.safetensors"
        self.tokenizer = folder / "tokenizer"
        self.evaluation = folder / "evaluation"
        self.alignments = folder / "alignments"

    def best_step(self) -> int | None:
        """The step of the best validation so far; None before the first."""
        steps = (int(entry["step"]) for entry in reversed(self.history()) if entry.get("best"))
        return next(steps, None)

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / "config.yaml").exists()

    def check_free(self) -> None:
        """Raise TakenError where something stands in the place of a new run."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise TakenError(
                f"{self.folder} exists and is no run, or an incomplete one: it has no config.yaml. "
                f"Give another name=, or move it away."
            )

    def create(
        self, config: DictConfig, overrides: Sequence[str], facts: Mapping[str, Any], tokenizer: Tokenizer
    ) -> None:
        """Write what a run begins with: the folder appears with all of it, or not at all.

        Raises:
            TakenError: the folder holds something already.
            UserError: it cannot be written.
        """
        self.check_free()
        try:
            with appearing(self.folder) as staging:
                staged = Run(staging)
                write_text(staging / "overrides.json", json.dumps(list(overrides)) + "\n")
                staged.note(status="begun", versions=versions(), **facts)
                tokenizer.save(staged.tokenizer)
                staged.write_config(config)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and self.folder.exists():
                raise TakenError(f"{self.folder} exists already. Give another name=.") from error  # created meanwhile
            raise unwritable(self.folder, error, "checkpoints=FOLDER") from error

    def write_config(self, config: DictConfig) -> None:
        """Write the configuration: choices by their names and resolved settings."""
        self.write_tree(without_classes(OmegaConf.to_container(resolved(config), resolve=False)))

    def write_tree(self, tree: dict[str, Any]) -> None:
        """Write a configuration that is resolved and name no class."""
        write_text(self.folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(tree)))

    def tree(self) -> dict[str, Any]:
        """The run's configuration in plain containers, without classes (UserError as `config`)."""
        tree: dict[str, Any] = without_classes(OmegaConf.to_container(self.config(), resolve=False))
        return tree

    def config(self) -> DictConfig:
        """The run's configuration, its classes those that the installed choices name.

        Raises:
            UserError: there is no run here, its configuration is damaged, or names a choice that is not there.
        """
        path = self.folder / "config.yaml"
        if not path.exists():
            raise UserError(missing_run(self.folder))
        try:
            tree = _tree(path.read_bytes())
        except Exception as error:
            raise damaged(path) from error
        if not isinstance(tree, dict):
            raise damaged(path, "it holds no settings")
        # What was saved is resolved: an interpolation could only come from someone who wants to read more than a run.
        if any(re.search(r"(?<!\\)(\\\\)*\$\{", text) for text in _texts(tree)):
            raise UserError(f"{path} holds an interpolation (${{...}}), which no saved run does. Do not use this run.")
        needed = ("data", "tokenizer", "model", "encoder", "attention", "decoder", "search", "seed")
        absent = [key for key in needed if key not in tree]
        if "choices" in tree and isinstance(tree["choices"], dict):
            chosen = ("data", "tokenizer", "encoder", "decoder", "search", "optimizer", "schedule", "trainer")
            absent += [f"choices.{key}" for key in chosen if key not in tree["choices"]]
        if absent:
            raise damaged(path, f"{', '.join(absent)} missing")
        try:
            return OmegaConf.create(with_classes(compat.with_choices(tree)))
        except UserError as error:
            raise UserError(f"{path} is damaged, or of another version: {error}") from error

    def overrides(self) -> list[str]:
        """The command line that made the run."""
        data = self.read_json("overrides.json")
        if not isinstance(data, list) or not all(isinstance(item, str) and "=" in item for item in data):
            raise damaged(self.folder / "overrides.json")
        return data

    def facts(self) -> dict[str, Any]:
        """Status, versions and counts."""
        data = self.read_object("run.json")
        if not all(isinstance(data[key], kind) for key, kind in _FACTS.items() if key in data):
            raise damaged(self.folder / "run.json")
        return data

    def note(self, **facts: Any) -> None:
        """Add facts to run.json."""
        known = self.facts() if (self.folder / "run.json").exists() else {}
        write_json(self.folder / "run.json", {**known, **facts})

    def history(self) -> list[dict[str, float]]:
        """The validations, in order."""
        path = self.folder / "history.jsonl"
        if not path.exists():
            return []
        try:
            history = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            raise damaged(path) from error
        if not all(isinstance(entry, dict) and "step" in entry and _are_numbers(entry) for entry in history):
            raise damaged(path)
        return history

    def keep_history(self, history: Sequence[dict[str, float]]) -> None:
        """Write the validations."""
        write_text(self.folder / "history.jsonl", "".join(json.dumps(entry) + "\n" for entry in history))

    def log(self, line: str) -> None:
        """Append a line to the run's log."""
        with (self.folder / "train.log").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line + "\n")

    def splits(self) -> list[str]:
        """The splits that were scored, sorted."""
        return sorted(path.parent.name for path in self.evaluation.glob("*/scores.json"))

    def scores(self, split: str) -> dict[str, Any]:
        """What `evaluate` found on a split (UserError if it is not there or damaged)."""
        return self.read_object(f"evaluation/{split}/scores.json")

    def read_object(self, name: str) -> dict[str, Any]:
        """A JSON file of the run that holds an object (UserError if it is not there or damaged)."""
        data = self.read_json(name)
        if not isinstance(data, dict):
            raise damaged(self.folder / name)
        return data

    def read_json(self, name: str) -> Any:
        """What a JSON file of the run holds (UserError if it is not there or damaged)."""
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UserError(f"{path} is missing: the run is incomplete. Restore it from an intact copy.") from error
        except ValueError as error:
            raise damaged(path) from error


def _are_numbers(entry: Mapping[str, object]) -> bool:
    return all(isinstance(value, int | float) for value in entry.values())


def _texts(tree: object) -> Iterator[str]:
    """Every text in a configuration."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _texts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value)
    elif isinstance(tree, str):
        yield tree


def attends(config: Mapping[str, Any]) -> bool:
    """Whether a configured model has attention; loads no model to know it."""
    return bool(config["choices"]["decoder"] != "none")


def settings(config: DictConfig) -> dict[str, Any]:
    """What a run is: its choices and settings, without the settings that only say where and how it is made.

    Two runs with equal settings are the same run; what does not take part (the attention of decoder=none) is left out.
    """
    tree: Any = OmegaConf.to_container(config, resolve=True)
    tree["decoder"]["first_state"] = compat.first_state(tree["choices"], tree["decoder"].get("first_state"))
    return {
        key: value
        for key, value in flattened(tree).items()
        if key not in INCIDENTAL and (attends(config) or not place(key).startswith("attention"))
    }


def runs_in(folder: Path) -> list[Path]:
    """The folders of the runs in a folder, by their names; none where there is no folder."""
    return sorted(path.parent for path in folder.glob("*/config.yaml")) if folder.is_dir() else []


def missing_run(folder: Path) -> str:
    """What to say where there is no run."""
    if folder.is_dir():
        inside = [path.name for path in runs_in(folder)]
        if inside:
            return f"{folder} is no run, but holds runs: {', '.join(inside[:10])}. Name one of them."
        return f"{folder} is no run, or an incomplete one: it has no config.yaml. Name the folder of a run."
    if folder.exists():
        return f"{folder} is a file. Name the folder of a run."
    runs = [path.name for path in runs_in(folder.parent)]
    known = f" {folder.parent} has {', '.join(runs[:10])}." if runs else ""
    return f"There is no run {folder}.{nearest(folder.name, runs)}{known}"


def versions() -> dict[str, str]:
    """Versions of what made a run."""
    found = {"python": platform.python_version(), "platform": platform.platform(), "nmt": _version("nmt")}
    return found | {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def free_name(checkpoints: Path, stem: str) -> str:
    """`stem`, or with the first counter from 2 that is free."""
    name, number = stem, 1
    while (checkpoints / name).exists() or lock_file(checkpoints / name).exists():
        number += 1
        name = f"{stem}-{number}"
    return name


def check_name(name: str) -> None:
    """Raise UserError for a name that is no folder name."""
    bad = not name or name in (".", "..") or "/" in name or os.sep in name or "\0" in name
    if bad or len(os.fsencode(name)) > 200:
        raise UserError(f"name={name} is no name for a folder. Give a name without / (and checkpoints= for the place).")
