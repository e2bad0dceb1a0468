"""The text of `--help`: heads, settings and comments of the yaml files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nmt import configuration
from nmt.choices import place
from nmt.command.composing import choices_of
from nmt.command.keys import aliases_of, read_head
from nmt.configuration import groups_of

WIDTH = 100
# Groups that users do not choose from: the data set selects its defaults.
_HIDDEN = ("data_defaults",)
# Groups that --help=all alone lists: the decoder brings its attention.
_IMPLIED = ("attention",)


class Setting(NamedTuple):
    """A setting in a yaml file: its value and its comment."""

    default: str
    comment: str

    def __str__(self) -> str:
        return "" if self.default == "???" else self.default.strip("\"'")


def help_text(verb: str, everything: bool = False) -> str:
    """Return the text of `--help`, which fits a screen, or of `--help=all`: every choice and every setting."""
    folder = configuration.config_folder()
    head = read_head(folder / f"{verb}.yaml")
    sweep = folder / "sweep.yaml"
    several = verb == "train" and sweep.is_file()
    choices = {key: name for key, name in choices_of(verb).items() if key not in _HIDDEN}
    lines = [
        f"usage: python -m nmt.{verb} [KEY=VALUE ...]{' [-m]' if several else ''} [--cfg] [--version] [--help]",
        "",
    ]
    lines += [*textwrap.wrap(head.summary, WIDTH), "", "examples:", *(f"  {line}" for line in head.examples), ""]
    if choices:
        lines += ["choices (GROUP=CHOICE; * marks the default):", *_choices(folder, choices, everything), ""]
    settings = dict(_settings(folder, verb, choices))
    listed = settings if everything else {key: settings[key] for key in head.notes.get("shown", []) if key in settings}
    lines += ["settings (KEY=VALUE; null means no value):", *_table(listed), ""]
    if several and everything:
        lines += [*textwrap.wrap(read_head(sweep).summary, WIDTH), *_table(dict(_read(sweep, ""))), ""]
    if everything:
        lines.append("debug=true prints a traceback with each error message, as does NMT_DEBUG=1 in the environment.")
        lines += textwrap.wrap(
            f"python -m nmt.{verb} --cfg prints the configuration with the choices and settings of the command line. "
            f"Their order does not matter.",
            WIDTH,
        )
    else:
        lines.append(f"python -m nmt.{verb} --help=all explains every setting; --cfg prints the configuration.")
    return "\n".join(lines)


def _choices(folder: Path, choices: Mapping[str, str], everything: bool) -> Iterator[str]:
    """A line for each group with its choices; the default is marked."""
    heads = {key.split("/")[0] for key in choices}
    groups = {
        group: [f"{name}*" if name == choices.get(group) else name for name in names]
        for group, names in groups_of(folder).items()
        if group.split("/")[0] in heads
        and (everything or (len(names) > 1 and group in choices and group not in _IMPLIED))
    }
    width = max(map(len, groups), default=0)
    for group, names in groups.items():
        indent = f"  {group:{width}}  "
        wrapped = textwrap.wrap(" ".join(names), WIDTH - len(indent), break_on_hyphens=False)
        if len(wrapped) > 1 and not everything:
            wrapped = [textwrap.shorten(" ".join(names), WIDTH - len(indent), placeholder=f" ... ({len(names)})")]
        yield from (f"{indent if number == 0 else ' ' * len(indent)}{line}" for number, line in enumerate(wrapped))
        aliases = aliases_of(folder, group) if everything else {}
        if aliases:
            also = f"also: {', '.join(f'{alias} = {name}' for alias, name in aliases.items())}"
            yield from textwrap.wrap(also, WIDTH, initial_indent=" " * len(indent), subsequent_indent=" " * len(indent))


def _settings(folder: Path, verb: str, choices: Mapping[str, str]) -> Iterator[tuple[str, Setting]]:
    """The settings of a command and of its default choices, then those of other choices, each key once."""
    yield from _read(folder / f"{verb}.yaml", "")
    groups = groups_of(folder)
    named = [(key.partition("@")[0], name, place(key)) for key, name in choices.items()]
    others = [(group, name, at) for group, _, at in named for name in groups[group]]
    keys = set[str]()
    for group, name, at in [*named, *others]:
        path = folder / group / f"{name}.yaml"
        if not path.is_file() or path.read_text(encoding="utf-8").startswith("# @package"):
            continue  # no choice, or a preset, which sets keys of other files
        for key, setting in _read(path, f"{at}."):
            if key not in keys:
                keys.add(key)
                yield key, setting


def _read(path: Path, prefix: str) -> Iterator[tuple[str, Setting]]:
    """The settings of a yaml file, with the comments beside them."""
    parents: list[tuple[int, str]] = []
    key, setting = "", Setting("", "")
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"( *)([A-Za-z]\w*): *(.*?) *(?:# *(.*))?$", line)
        more = re.match(r" +# *(.*)$", line)
        if more and key:
            setting = setting._replace(comment=f"{setting.comment} {more[1]}")
            continue
        if key:
            yield key, setting
            key = ""
        if match and match[2] not in ("defaults", "hydra"):
            indent = len(match[1])
            parents = [(depth, name) for depth, name in parents if depth < indent]
            if match[3]:
                dotted = ".".join([*(name for _, name in parents), match[2]])
                key, setting = (
                    f"{prefix}{dotted}",
                    Setting(match[3], f"required: {match[4]}" if match[3] == "???" else match[4] or ""),
                )
            else:
                parents.append((indent, match[2]))
    if key:
        yield key, setting


def _table(settings: Mapping[str, Setting]) -> Iterable[str]:
    """A line for each setting, or several lines if its comment is long."""
    words = {key: f"  {key}={setting}" for key, setting in settings.items()}
    width = min(max(map(len, words.values()), default=0), 34) + 2
    for key, word in words.items():
        comment = textwrap.wrap(settings[key].comment, WIDTH - width) or [""]
        if len(word) >= width and comment != [""]:
            comment.insert(0, "")
        yield f"{word:{width}}{comment[0]}".rstrip()
        yield from (f"{'':{width}}{line}" for line in comment[1:])
