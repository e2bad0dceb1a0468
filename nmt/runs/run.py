"""The run folder: its files, and reading a run.

checkpoints/NAME/
  config.yaml         the resolved configuration
  overrides.json      the command line of the run, for resuming
  run.json            status, versions of libraries, counts
  tokenizer/          SentencePiece models
  best.safetensors    weights of the best validation       last.safetensors    of the last save
  lexicon.safetensors likely translations of each piece, for shortlist=
  words.safetensors   checksums of the words of the training text
  trainer.pt          the state for resuming (plain tensors)      trainer-before.pt   of the save before
  doubt.json          the model of how likely a translated word is correct
  history.jsonl       one validation per line
  train.log           the messages of training
  tensorboard/        curves, samples, attention maps
  evaluation/SPLIT/   translations, scores, heatmaps
  checksums.json      of the files above, compared when they are read
  alignments/         error rates against gold links, one file per measurement
"""

import errno
import functools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from nmt.config.choices import place, with_classes
from nmt.config.configuration import INCIDENTAL, flattened, resolved, scalars, without_classes
from nmt.config.quotes import python, shell_word, unquoted
from nmt.runs.trust import is_trusted, trust
from nmt.runs.versions import code_revision, version_of, versions
from nmt.system import platform as system
from nmt.system.errors import UnknownSettingError, UserError, damaged, nearest
from nmt.system.facts import MEASURES, OBJECT, RUN, SCORES, VALIDATION, Fields, Kind, fault
from nmt.system.files import appearing, json_text, unwritable, write_text
from nmt.system.foreign import check_contents, check_rows, inside, parse_json, read_json, read_saved_yaml, read_text_of
from nmt.system.integrity import add, known, replacing
from nmt.system.locks import lock_file
from nmt.system.terminal import print_message
from nmt.text.tokenizer import Tokenizer

#: The number of the format of run folders, in run.json. If you change the format, raise it and, from version 1.0 on,
#: add to `UPGRADES`, under the old number, a function that converts a configuration to the new format.
FORMAT = 1
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
#: Files that can be deleted before a finished run is shared: only resuming and curves need them.
PRIVATE = ("trainer.pt", "trainer-before.pt", "last.safetensors", "tensorboard")
#: Introduces the example at the end of the log of a training.
EXAMPLE_FOLLOWS = "A sentence of the validation set, and its translation:"


@functools.lru_cache(maxsize=16)
def _tree(yaml: str) -> Any:
    """Parse a configuration; cached, since a command reads the configuration of its run several times."""
    return OmegaConf.to_container(OmegaConf.create(yaml), resolve=False)


class TakenError(UserError):
    """The folder of a new run exists already."""


class _FolderPart:
    """A part of a run folder: an attribute whose value is the part's path (UserError if it is a link)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: "Run", owner: type["Run"]) -> Path:
        return inside(run.folder, self.name)


class Run:
    """One run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_checked = False

    best = _FolderPart("best.safetensors")  # weights of the best validation
    last = _FolderPart("last.safetensors")  # weights of the last save
    state = _FolderPart("trainer.pt")
    earlier_state = _FolderPart("trainer-before.pt")  # the state of the save before
    lexicon = _FolderPart("lexicon.safetensors")
    words = _FolderPart("words.safetensors")
    doubt = _FolderPart("doubt.json")
    tokenizer = _FolderPart("tokenizer")
    evaluation = _FolderPart("evaluation")
    alignments = _FolderPart("alignments")

    def check(self) -> None:
        """Raise UserError if the folder has a link or a special file, through which files outside could be used."""
        if not self._is_checked:
            check_contents(self.folder)
            self._is_checked = True

    def best_step(self) -> int | None:
        """The step of the best validation so far; None before the first."""
        steps = (int(entry["step"]) for entry in reversed(self.history()) if entry.get("best"))
        return next(steps, None)

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / "config.yaml").exists()

    def check_free(self) -> None:
        """Raise TakenError if the folder of a new run exists."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise TakenError(
                f"{self.folder} exists but is not a run: config.yaml is missing. Give another name=, or move the "
                f"folder away."
            )

    def create(
        self, config: DictConfig, overrides: Sequence[str], facts: Mapping[str, Any], tokenizer: Tokenizer
    ) -> None:
        """Create the folder of a new run with its first files, atomically.

        Raises:
            TakenError: the folder exists and is not empty.
            UserError: the folder cannot be written.
        """
        self.check_free()
        try:
            with appearing(self.folder) as staging:
                staged = Run(staging)
                staged.write("overrides.json", json.dumps(list(overrides)) + "\n")
                staged.note(format=FORMAT, status="begun", versions=versions(), **facts)
                tokenizer.save(staged.tokenizer)
                add(staging, [path.relative_to(staging).as_posix() for path in sorted(staged.tokenizer.iterdir())])
                staged.write_config(config)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and self.folder.exists():
                raise TakenError(f"{self.folder} already exists. Give another name=.") from error  # created meanwhile
            raise unwritable(self.folder, error, "checkpoints=FOLDER") from error

    def write_config(self, config: DictConfig) -> None:
        """Write the names of choices and the resolved settings, and mark the run as this user's."""
        tree = without_classes(OmegaConf.to_container(resolved(config), resolve=False))
        text = OmegaConf.to_yaml(OmegaConf.create(tree), sort_keys=True)  # a resumed run has the same order
        path = inside(self.folder, "overrides.json")
        words = path.read_bytes() if path.exists() else b""
        if not trust([text.encode(), words]):
            print_message(
                "warning: the state folder cannot be written ($XDG_STATE_HOME, or ~/.local/state). nmt.evaluate and a "
                "resumed training will ask whether the run's data settings may be used."
            )
        self.write("config.yaml", text)

    def write(self, name: str, text: str) -> None:
        """Replace a file of text, with its checksum."""
        with replacing(self.folder, name) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")

    def write_tree(self, tree: dict[str, Any]) -> None:
        """Write the configuration of a record, which is already resolved and without classes."""
        write_text(self.folder / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(tree)))

    def is_own(self) -> bool:
        """Whether this user has made the run, with unchanged settings and command line (`nmt.runs.trust`)."""
        try:
            contents = [inside(self.folder, name).read_bytes() for name in ("config.yaml", "overrides.json")]
        except OSError:
            return False
        return is_trusted(contents)

    def tree(self) -> dict[str, Any]:
        """The run's configuration in plain containers, without classes (UserError as `config`)."""
        tree: dict[str, Any] = without_classes(OmegaConf.to_container(self.config(), resolve=False))
        return tree

    def is_unchecked(self) -> bool:
        """Whether there are no checksums of the weights."""
        return not {self.best.name, self.last.name} & known(self.folder).keys()

    def config(self) -> DictConfig:
        """The run's configuration, with the classes of the installed choices.

        Raises:
            UserError: there is no run, it has another format, its configuration is damaged, or it names an unknown
                choice.
        """
        path = self.folder / "config.yaml"
        if not path.exists():
            raise UserError(missing_run(self.folder))
        self.check()
        try:
            tree = _tree(read_saved_yaml(path))
        except UserError:
            raise
        except Exception as error:
            raise damaged(path) from error
        if not isinstance(tree, dict):
            raise damaged(path, "it has no settings")
        tree = self._upgraded(tree)
        # Saved configurations are resolved: an interpolation could only be an attack.
        if any(isinstance(text, str) and re.search(r"(?<!\\)(\\\\)*\$\{", text) for text in scalars(tree)):
            raise UserError(f"{path} has an interpolation (${{...}}), which saved runs never do. Do not use this run.")
        needed = ("data", "tokenizer", "model", "encoder", "attention", "decoder", "search", "seed")
        absent = [key for key in needed if key not in tree]
        if isinstance(tree.get("choices"), dict):
            required = ("data", "tokenizer", "encoder", "decoder", "search", "optimizer", "schedule", "trainer")
            absent += [f"choices.{key}" for key in required if key not in tree["choices"]]
        if absent:
            reason = f"{', '.join(absent)} missing"
            raise self.misfit(reason) or damaged(path, reason)
        try:
            return OmegaConf.create(with_classes(tree))
        except UserError as error:
            of_version = isinstance(error, UnknownSettingError) and self.misfit(str(error))
            raise of_version or UserError(f"{path} is damaged: {error}") from error

    def misfit(self, reason: str) -> UserError | None:
        """The error for a run that this version cannot read, with a reason; None if this version has made the run."""
        return None if code_revision() in self.facts().get("code", []) else self._unreadable(reason)

    def _unreadable(self, reason: str) -> UserError:
        facts = self.facts()
        version = f"{'a later' if facts.get('format', 0) > FORMAT else 'another'} version ({version_of(facts)})"
        command = ""
        if self.is_own():
            words = [word for word in self.overrides() if not re.match(r"(name|checkpoints|resume)=", word)]
            command = f" ({python()} -m nmt.train {' '.join(map(shell_word, [*map(unquoted, words), 'name=NAME']))})"
        return UserError(
            f"{self.folder} was made by {version}, and this one cannot read it: {reason.rstrip('.')}. Train it "
            f"again{command}, or use that version."
        )

    def _upgraded(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Convert a configuration of an earlier format to the current format (UserError for any other format)."""
        facts = self.facts()
        number = facts.get("format")
        while number in UPGRADES:
            tree, number = UPGRADES[number](tree), number + 1
        if number != FORMAT:
            has = "no format number" if number is None else f"format {number}"
            raise self._unreadable(f"it has {has} in run.json, and this version of nmt reads format {FORMAT}")
        return tree

    def overrides(self) -> list[str]:
        """The overrides of the run's command line (UserError if they are damaged, or could read this machine)."""
        data = self.read_json("overrides.json")
        if not isinstance(data, list) or not all(isinstance(item, str) and "=" in item for item in data):
            raise damaged(self.folder / "overrides.json")
        doubtful = [word for word in data if re.match(r"[+~]*hydra\b", word) or re.search(r"\$\{[^}]*:", word)]
        if doubtful and not self.is_own():
            raise UserError(
                f"{self.folder / 'overrides.json'} has {doubtful[0]!r}, which reads the environment or files of this "
                f"machine, and somebody else has made or changed this run. Do not use it."
            )
        return data

    def facts(self) -> dict[str, Any]:
        """Status, versions and counts."""
        return self.read_object("run.json", RUN)

    def note(self, **facts: Any) -> None:
        """Add facts to run.json."""
        known = self.facts() if (self.folder / "run.json").exists() else {}
        self.write("run.json", json_text({**known, **facts}))

    def note_start(self) -> None:
        """Note that training runs, and the code revision; a resumed run may have several revisions."""
        code = code_revision()
        earlier = [revision for revision in self.facts().get("code", []) if revision != code]
        self.note(format=FORMAT, status="running", code=[*earlier, code])

    def history(self) -> list[dict[str, float]]:
        """The validations, in order."""
        path = inside(self.folder, "history.jsonl")
        if not path.exists():
            return []
        history = [parse_json(path, line) for line in read_text_of(path).splitlines()]
        return check_rows(path, history, VALIDATION)

    def keep_history(self, history: Sequence[dict[str, float]]) -> None:
        """Write the validations."""
        self.write("history.jsonl", "".join(json.dumps(entry) + "\n" for entry in history))

    def log(self, line: str) -> None:
        """Append a line to the run's log."""
        with inside(self.folder, "train.log").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line + "\n")

    def splits(self) -> list[str]:
        """The splits with scores, sorted."""
        self.check()
        return sorted(path.parent.name for path in self.evaluation.glob("[!.]*/scores.json"))

    def scores(self, split: str) -> dict[str, Any]:
        """The scores of a split (UserError if they are missing or damaged)."""
        return self.read_object(f"evaluation/{split}/scores.json", SCORES)

    def rows(self, split: str, name: str, kind: Kind | Fields) -> list[dict[str, Any]] | None:
        """The rows of a file of an evaluation; None if there is no such file (UserError if damaged)."""
        path = inside(self.evaluation, split, name)
        return check_rows(path, read_json(path), kind) if path.exists() else None

    def measures(self, split: str, sentences: int) -> list[dict[str, Any]] | None:
        """The measures of each sentence of a split; see `rows`."""
        rows = self.rows(split, "sentences.json", MEASURES)
        if rows is not None and [row["line"] for row in rows] != list(range(1, sentences + 1)):
            raise damaged(self.evaluation / split / "sentences.json", f"it has not {sentences:,} rows, one a line")
        return rows

    def read_object(self, name: str, fields: Fields = OBJECT) -> dict[str, Any]:
        """The object in a JSON file of the run (UserError if it is missing or damaged, or has other fields)."""
        data: dict[str, Any] = self.read_json(name)
        if wrong := fault(data, fields):
            raise damaged(self.folder / name, wrong)
        return data

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run (UserError if it is missing or damaged)."""
        path = inside(self.folder, name)
        try:
            return read_json(path)
        except FileNotFoundError as error:
            raise UserError(f"{path} is missing: the run is incomplete. Restore it from an intact copy.") from error


def attends(config: Mapping[str, Any]) -> bool:
    """Whether a configured model has attention, without loading the model."""
    return bool(config["choices"]["decoder"] != "none")


def settings(config: DictConfig) -> dict[str, Any]:
    """The identity of a run: its choices and settings, without settings such as device and folder.

    Two runs with equal settings are the same run. Settings without effect (the attention of decoder=none) are left out.
    """
    tree: Any = OmegaConf.to_container(config, resolve=True)
    return {
        key: value
        for key, value in flattened(tree).items()
        if key not in INCIDENTAL and (attends(config) or not place(key).startswith("attention"))
    }


def runs_in(folder: Path) -> list[Path]:
    """The run folders in a folder, sorted by name; none if the folder does not exist."""
    return sorted(path.parent for path in folder.glob("*/config.yaml")) if folder.is_dir() else []


def missing_run(folder: Path) -> str:
    """The message for a folder that is not a run."""
    if folder.is_dir():
        inside = [path.name for path in runs_in(folder)]
        if inside:
            return f"{folder} is not a run, but contains runs: {', '.join(inside[:10])}. Give one of them."
        return f"{folder} is not a run: config.yaml is missing. Give the folder of a run."
    if folder.exists():
        return f"{folder} is a file. Give the folder of a run."
    runs = [path.name for path in runs_in(folder.parent)]
    if runs:
        return f"There is no run {folder}.{nearest(folder.name, runs)} {folder.parent} has {', '.join(runs[:10])}."
    # The name of the parent folder may be wrong or missing: look for runs in all folders beside it.
    around = folder.parent if folder.parent.is_dir() else folder.parent.parent
    others = [str(path.parent) for path in sorted(around.glob("*/*/config.yaml"))]
    same = [other for other in others if Path(other).name == folder.name]
    near = f" Did you mean '{same[0]}'?" if len(same) == 1 else nearest(str(folder), others)
    others = list(dict.fromkeys(str(Path(other).parent) for other in others))
    listed = f" There are runs in {', '.join(others[:5])}." if others else " Name the folder of a run."
    return f"There is no run {folder}.{near}{listed}"


def free_name(checkpoints: Path, stem: str) -> str:
    """`stem`, or `stem-2`, `stem-3` and so on if it is taken."""
    name, number = stem, 1
    while (checkpoints / name).exists() or lock_file(checkpoints / name).exists():
        number += 1
        name = f"{stem}-{number}"
    return name


def check_name(name: str) -> None:
    """Raise UserError if a name is not a valid folder name."""
    if problem := system.name_problem(name) or "it is longer than 200 bytes" * (len(os.fsencode(name)) > 200):
        raise UserError(
            f"name={name} is not a valid folder name: {problem}. Give another name (checkpoints= sets the place)."
        )
