"""The run folder: what is written where, and reading a run back.

    checkpoints/NAME/
      config.yaml         the resolved configuration
      overrides.json      the command line that made it, for resuming
      run.json            status, versions of libraries, what was counted
      tokenizer/          SentencePiece models
      best.safetensors    weights of the best validation       last.safetensors    of the last save
      trainer.pt          all that resuming takes (plain tensors)
      history.jsonl       one validation a line
      train.log           what was said on the way
      tensorboard/        curves, samples, attention pictures
      evaluation/SPLIT/   translations, scores, pictures
"""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from nmt.errors import UserError, nearest
from nmt.files import write_text

LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "datasets", "hydra-core", "babel", "numpy", "safetensors")


class Run:
    """One run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def best(self) -> Path:
        """Weights of the best validation."""
        return self.folder / "best.safetensors"

    @property
    def last(self) -> Path:
        """Weights of the last save."""
        return self.folder / "last.safetensors"

    @property
    def tokenizer(self) -> Path:
        """The folder of the SentencePiece models."""
        return self.folder / "tokenizer"

    @property
    def evaluation(self) -> Path:
        """Where scores and pictures go, a folder a split."""
        return self.folder / "evaluation"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / "config.yaml").exists()

    def create(self, config: DictConfig, overrides: Sequence[str], facts: Mapping[str, Any]) -> None:
        """Writes what a run begins with.

        Raises:
            UserError: the folder holds something else already, or cannot be written.
        """
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise UserError(f"{self.folder} exists and is not a run. Give another name=, or move it away.")
        write_text(self.folder / "overrides.json", json.dumps(list(overrides), ensure_ascii=False) + "\n")
        self.note(status="begun", versions=versions(), **facts)
        self.write_config(config)

    def write_config(self, config: DictConfig) -> None:
        """Writes the configuration, resolved."""
        resolved = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
        write_text(self.folder / "config.yaml", OmegaConf.to_yaml(resolved))

    def config(self) -> DictConfig:
        """The run's configuration.

        Raises:
            UserError: there is no run here, or its configuration is damaged.
        """
        path = self.folder / "config.yaml"
        if not path.exists():
            raise UserError(missing_run(self.folder))
        try:
            config = OmegaConf.load(path)
        except Exception as error:
            raise UserError(f"{path} is damaged and cannot be read. Take a copy of the run that is whole.") from error
        if not isinstance(config, DictConfig):
            raise UserError(f"{path} is damaged: it holds no settings. Take a copy of the run that is whole.")
        needed = ("data", "tokenizer", "model", "encoder", "attention", "decoder", "search", "seed")
        absent = [key for key in needed if key not in config]
        if absent:
            raise UserError(f"{path} is damaged: {', '.join(absent)} missing. Take a copy of the run that is whole.")
        return config

    def overrides(self) -> list[str]:
        """The command line that made the run."""
        data = self._json("overrides.json")
        return [str(item) for item in data] if isinstance(data, list) else []

    def facts(self) -> dict[str, Any]:
        """Status, versions and counts."""
        data = self._json("run.json")
        return data if isinstance(data, dict) else {}

    def note(self, **facts: Any) -> None:
        """Adds facts to run.json."""
        known = self.facts() if (self.folder / "run.json").exists() else {}
        text = json.dumps({**known, **facts}, indent=2, ensure_ascii=False, default=str)
        write_text(self.folder / "run.json", text + "\n")

    def history(self) -> list[dict[str, float]]:
        """The validations, in order."""
        path = self.folder / "history.jsonl"
        if not path.exists():
            return []
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as error:
            raise UserError(f"{path} is damaged and cannot be read. Take a copy of the run that is whole.") from error

    def keep_history(self, history: Sequence[dict[str, float]]) -> None:
        """Writes the validations."""
        write_text(self.folder / "history.jsonl", "".join(json.dumps(entry) + "\n" for entry in history))

    def log(self, line: str) -> None:
        """Appends a line to the run's log."""
        with (self.folder / "train.log").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _json(self, name: str) -> Any:
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UserError(f"{path} is missing: the run is incomplete. Take a copy that is whole.") from error
        except ValueError as error:
            raise UserError(f"{path} is damaged and cannot be read. Take a copy of the run that is whole.") from error


def missing_run(folder: Path) -> str:
    """What to say where there is no run."""
    runs = sorted(path.parent.name for path in folder.parent.glob("*/config.yaml")) if folder.parent.is_dir() else []
    if folder.is_dir():
        return f"{folder} is no run, or an incomplete one: it has no config.yaml. Name the folder of a run."
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
    while (checkpoints / name).exists():
        number += 1
        name = f"{stem}-{number}"
    return name


def check_name(name: str) -> None:
    """Raises UserError for a name that is no folder name."""
    if not name or name in (".", "..") or "/" in name or os.sep in name or "\0" in name or len(name.encode()) > 200:
        raise UserError(f"name={name} is no name for a folder. Give a name without / (and checkpoints= for the place).")


def shown(key: str, value: object) -> str:
    """`key=value` as a person may type it in a shell."""
    return shlex.quote(f"{key}={value}")


def command() -> str:
    """How this Python is called, for commands that are shown to the user."""
    return "python" if "python" in Path(sys.executable).name else sys.executable
