"""The text of `--help`: heads, settings and comments of the yaml files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config import configuration
from nmt.config.choices import place
from nmt.config.composition import choices_of
from nmt.config.configuration import groups_of
from nmt.config.keys import aliases_of, read_head

WIDTH = 100
# Groups that users do not choose from: the data set selects its defaults.
_HIDDEN = ("data_defaults",)
# Groups that --help=all alone lists: the decoder brings its attention.
_IMPLIED = ("attention",)


class Setting(NamedTuple):
    """A setting in a yaml file: its value and its comment."""

    default: str
    comment: str
    owners: str = ""  # the choices that have it, unless all of the group do

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
        f"usage: python -m nmt.{verb} [KEY=VALUE ...]{' [-m]' if several else ''} [--cfg] [--version] [--help[=all]]",
        "",
    ]
    lines += [*textwrap.wrap(head.summary, WIDTH), "", "examples:", *(f"  {line}" for line in head.examples), ""]
    if choices:
        lines += ["choices (GROUP=CHOICE; * marks the default):", *_choices(folder, choices, everything), ""]
    settings = list(_settings(folder, verb, choices))
    if not everything:
        first = dict(reversed(settings))
        settings = [(key, first[key]._replace(owners="")) for key in head.notes.get("shown", []) if key in first]
    lines += ["settings (KEY=VALUE; null means no value):", *_table(settings), ""]
    if several and everything:
        lines += [*textwrap.wrap(read_head(sweep).summary, WIDTH), *_table(list(_read(sweep, ""))), ""]
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
    """The settings of a command, then of its groups, default choices first; each as often as choices differ in it."""
    yield from _read(folder / f"{verb}.yaml", "")
    groups = groups_of(folder)
    for key, default in choices.items():
        group = key.partition("@")[0]
        # A preset, which sets keys of other files, has none of its own.
        names = [name for name in groups[group] if not _text(folder / group / f"{name}.yaml").startswith("# @package")]
        owners: dict[tuple[str, Setting], list[str]] = {}
        for name in sorted(names, key=lambda name: name != default):
            for pair in _of_choice(folder / group, name, f"{place(key)}.").items():
                owners.setdefault(pair, []).append(name)
        for (dotted, setting), users in owners.items():
            yield dotted, setting._replace(owners="" if len(users) == len(names) else f"{group}={','.join(users)}")


def _of_choice(folder: Path, name: str, prefix: str) -> dict[str, Setting]:
    """The settings of a choice, with those of the choice that it changes (`defaults: [unigram, _self_]`)."""
    path = folder / f"{name}.yaml"
    base = re.search(r"^defaults: \[(\w+), _self_\]", _text(path), re.MULTILINE)
    settings = _of_choice(folder, base[1], prefix) if base else {}
    for key, setting in _read(path, prefix):
        settings[key] = (
            setting if setting.comment or key not in settings else settings[key]._replace(default=setting[0])
        )
    return settings


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _read(path: Path, prefix: str) -> Iterator[tuple[str, Setting]]:
    """The settings of a yaml file, with the comments beside them."""
    parents: list[tuple[int, str]] = []
    key, setting = "", Setting("", "")
    for line in _text(path).splitlines():
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


def _table(settings: Sequence[tuple[str, Setting]]) -> Iterable[str]:
    """A line for each setting, or more where its comment is long."""
    words = [f"  {key}={setting}" for key, setting in settings]
    width = min(max(map(len, words), default=0), 34) + 2
    for word, (_, setting) in zip(words, settings, strict=True):
        only = f"(with {setting.owners}) " if setting.owners else ""
        comment = textwrap.wrap(f"{only}{setting.comment}", WIDTH - width) or [""]
        if len(word) >= width and comment != [""]:
            comment.insert(0, "")
        yield f"{word:{width}}{comment[0]}".rstrip()
        yield from (f"{'':{width}}{line}" for line in comment[1:])
