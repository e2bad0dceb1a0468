"""From a configuration to a request: what a verb is asked to do, as one frozen value whose settings are checked.

    DictConfig, words of the command line -read-> Translating(translator, input, output, ...)

A request is a dataclass whose fields are named like the settings of the verb; the kinds and limits of their values are
its type hints (`nmt.limits`). A field that is a dataclass itself takes its settings from the same configuration.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from omegaconf import DictConfig, OmegaConf

from nmt.data.corpus import Split, given_split
from nmt.data.lines import read_parallel_lines
from nmt.errors import UserError
from nmt.limits import checked
from nmt.runs import Run

Request = TypeVar("Request")


@dataclass(frozen=True)
class SearchRequest:
    """How to search: as a run does, but for what the command line says.

    Attributes:
        choice: the search that the verb's configuration names.
        node: its settings and its class.
        words: the words of the command line about it.
    """

    choice: str
    node: Mapping[str, Any]
    words: Sequence[str]

    def for_run(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        """The choice of search for a run, and its settings and class."""
        keys = [word.lstrip("+").partition("=")[0] for word in self.words]
        config = run.config()
        choice = config.choices["search"]
        if "search" in keys or (keys and choice != self.choice):  # then settings are those of this verb's search
            return self.choice, self.node
        return choice, {**config.search, **{key: self.node[key] for key in (key.partition(".")[2] for key in keys)}}


def read(kind: type[Request], config: DictConfig, overrides: Sequence[str] = ()) -> Request:
    """The request of this kind that a configuration describes, which a command line of `overrides` has made.

    Raises:
        UserError: a setting is not of its kind or out of range.
    """
    tree: Any = OmegaConf.to_container(config, resolve=True)
    request: Request = _filled(kind, tree, overrides)
    return request


def _filled(kind: Any, tree: Mapping[str, Any], overrides: Sequence[str]) -> Any:
    """A request, or a part of one, with the settings of a tree."""
    if kind is SearchRequest:
        words = [word for word in overrides if word.lstrip("+").startswith("search")]
        return SearchRequest(tree["choices"]["search"], tree["search"], words)
    make = getattr(kind, "choose", kind)  # what a value is chosen by may be other settings than its fields
    parameters = inspect.signature(make).parameters
    names = [name for name in parameters if name in tree or parameters[name].default is inspect.Parameter.empty]
    parts = {name: hint for name, hint in get_type_hints(kind).items() if is_dataclass(hint) and name in names}
    settings = {name: tree[name] for name in names if name not in parts}
    return checked(make, settings)(**{name: _filled(hint, tree, overrides) for name, hint in parts.items()})


@dataclass(frozen=True)
class GivenText:
    """What is to be scored: a split of the data set, or a file of sentences with a file of their references.

    None of them stands for all that there is.
    """

    split: str | None
    source: Path | None
    reference: Path | None

    def __post_init__(self) -> None:
        check_pair({"source": self.source, "reference": self.reference}, "scoring takes both")
        if self.source is not None and self.split is not None:
            raise UserError("split= and source= are two things to score. Give one of them.")

    def read(self) -> Split | None:
        """The split that the files hold, if there are files (UserError if they do not fit together)."""
        if self.source is None or self.reference is None:
            return None
        split = given_split(self.source, *read_parallel_lines(self.source, self.reference))
        if not split.source:
            raise UserError(f"{self.source} is empty. Give sentences to translate.")
        return split


def check_pair(paths: Mapping[str, object], reason: str) -> None:
    """UserError if one of two settings is given without the other."""
    given, missing = ([key for key, path in paths.items() if (path is None) is none] for none in (False, True))
    if given and missing:
        raise UserError(f"{given[0]}= needs {missing[0]}= beside it: {reason}.")
