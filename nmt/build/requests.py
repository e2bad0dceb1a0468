"""Configuration -> request: the checked settings of a command as one frozen value.

    DictConfig, words of the command line -read-> Translating(translator, input, output, ...)

A request is a dataclass whose fields have the names of the command's settings. Its type hints define their types and
limits (`nmt.system.limits`). A field that is a dataclass is filled from the same configuration.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from omegaconf import DictConfig, OmegaConf

from nmt.data.dataset import Split, given_split
from nmt.data.lines import read_parallel_lines
from nmt.data.misalignment import doubts_about
from nmt.data.streams import decoding, name_of
from nmt.system.errors import UserError
from nmt.system.limits import checked
from nmt.system.terminal import print_message

Request = TypeVar("Request")
#: data=run: use the data settings of a run, even if another user has made the run.
Data = Literal["run"]


@dataclass(frozen=True)
class SearchRequest:
    """The search of a run with the changes of the command line.

    Attributes:
        choice: the choice of search in the command's configuration.
        node: the settings and the class of this search.
        words: the overrides of the search in the command line.
    """

    choice: str
    node: Mapping[str, Any]
    words: Sequence[str]

    def for_run(self, config: DictConfig) -> tuple[str, Mapping[str, Any]]:
        """The choice of search for a run with this configuration, and its settings and class."""
        keys = [word.lstrip("+").partition("=")[0] for word in self.words]
        choice = config.choices["search"]
        if "search" in keys or (keys and choice != self.choice):  # the settings belong to the search of this command
            return self.choice, self.node
        return choice, {**config.search, **{key: self.node[key] for key in (key.partition(".")[2] for key in keys)}}


def read(kind: type[Request], config: DictConfig, overrides: Sequence[str] = ()) -> Request:
    """Make a request of this kind from a configuration and the `overrides` of its command line.

    Raises:
        UserError: a setting has the wrong type or is out of range.
    """
    tree: Any = OmegaConf.to_container(config, resolve=True)
    request: Request = _filled(kind, tree, overrides)
    return request


def _filled(kind: Any, tree: Mapping[str, Any], overrides: Sequence[str]) -> Any:
    """A request, or a dataclass in it, with the settings of a tree."""
    if kind is SearchRequest:
        words = [word for word in overrides if word.lstrip("+").startswith("search")]
        return SearchRequest(tree["choices"]["search"], tree["search"], words)
    make = getattr(kind, "choose", kind)  # the parameters of `choose` may differ from the fields
    parameters = inspect.signature(make).parameters
    names = [name for name in parameters if name in tree or parameters[name].default is inspect.Parameter.empty]
    parts = {name: hint for name, hint in get_type_hints(kind).items() if is_dataclass(hint) and name in names}
    settings = {name: tree[name] for name in names if name not in parts}
    return checked(make, settings)(**{name: _filled(hint, tree, overrides) for name, hint in parts.items()})


@dataclass(frozen=True)
class GivenText:
    """The text to score: a split of the data set, or a file of sentences with one or several files of references.

    If all are None, every split is scored.
    """

    split: str | None
    source: Path | None
    reference: str | Sequence[str] | None
    data: Data | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.reference is not None and not self.references:
            raise UserError("reference=[] is empty. Give reference=FILE, or several: reference=[FILE,FILE].")
        check_pair(self.files, "scoring needs both files")
        if self.source is not None and self.split is not None:
            raise UserError("split= and source= cannot be combined. Give one of them.")

    @property
    def references(self) -> list[Path]:
        """The files of references."""
        names = [self.reference] if isinstance(self.reference, str) else self.reference or ()
        return [Path(name) for name in names]

    @property
    def files(self) -> dict[str, Path | None]:
        """Setting -> file."""
        references = {f"reference ({number})": path for number, path in enumerate(self.references[1:], 2)}
        return {"source": self.source, "reference": next(iter(self.references), None), **references}

    def read(self) -> Split | None:
        """Read the files as a split; None without files (UserError if they are not parallel)."""
        if self.source is None or self.reference is None:
            return None
        with decoding(self.encoding, "encoding"):
            sides = read_parallel_lines(self.source, *self.references)
        for doubt in doubts_about(sides[:2], [str(self.source), str(self.references[0])]):
            print_message(doubt)
        split = given_split(self.source, *sides)
        if not split.source:
            raise UserError(f"{name_of(self.source)} is empty. Give sentences to translate.")
        return split


def check_pair(paths: Mapping[str, object], reason: str) -> None:
    """Raise UserError if one of two settings is given without the other."""
    given, missing = ([key for key, path in paths.items() if (path is None) is none] for none in (False, True))
    if given and missing:
        raise UserError(f"{given[0]}= needs {missing[0]}= as well: {reason}.")


def note_one_document(lines: int) -> None:
    """Print a note that all lines count as one document, since there is no empty line among them."""
    if lines > 1:
        print_message(
            f"No empty line among {lines:,} lines: all are taken for one document. If they are not, separate documents "
            "with empty lines, or give documents=none.",
        )
