"""The text of `--help`: the settings of a composed configuration, with the comments of the yaml files."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from nmt.config import configuration
from nmt.config.choices import in_command, place
from nmt.config.composition import choices_of, compose
from nmt.config.configuration import groups_of, leaves, read_yaml, without_classes
from nmt.config.keys import aliases_of, read_head
from nmt.system.limits import written_as

WIDTH = 100
# Groups that users do not choose from: the data set selects its defaults.
_HIDDEN = ("data_defaults",)
# Groups that only --help=all lists: the decoder implies its attention.
_IMPLIED = ("attention",)


def help_text(verb: str, everything: bool = False, overrides: Sequence[str] = ()) -> str:
    """Return the text of `--help`, which fits a screen, or of `--help=all`: every choice and every setting.

    The settings and their values are those of the command line with the quoted `overrides`.
    """
    folder = configuration.config_folder()
    head = read_head(folder / f"{verb}.yaml")
    several = verb == "train" and (folder / "sweep.yaml").is_file()
    choices = {key: name for key, name in choices_of(verb).items() if key not in _HIDDEN}
    lines = [
        f"usage: python -m nmt.{verb} [KEY=VALUE ...]{' [-m]' if several else ''} [--cfg] [--version] [--help[=all]]",
        "",
    ]
    lines += [*textwrap.wrap(head.summary, WIDTH), "", "examples:", *(f"  {line}" for line in head.examples), ""]
    if choices:
        lines += ["choices (GROUP=CHOICE; * marks the default):", *_choices(folder, choices, everything), ""]
    settings = _settings(verb, overrides, None if everything else head.notes.get("shown", []))
    lines += ["settings (KEY=VALUE; null means no value):", *settings, ""]
    if several and everything:
        lines += [*textwrap.wrap(read_head(folder / "sweep.yaml").summary, WIDTH), *_settings("sweep", (), None), ""]
    if everything:
        lines.append("debug=true prints a traceback with each error message, as does NMT_DEBUG=1 in the environment.")
        lines += textwrap.wrap(
            f"python -m nmt.{verb} --cfg prints the configuration with the choices and settings of the command line. "
            f"{'GROUP=CHOICE --help=all explains the settings of another choice. ' if choices else ''}Their order does "
            f"not matter.",
            WIDTH,
        )
    else:
        lines.append(f"python -m nmt.{verb} --help=all explains every setting; --cfg prints the configuration.")
    return "\n".join(lines)


def _choices(folder: Path, choices: Mapping[str, str], everything: bool) -> Iterator[str]:
    """Yield a line for each group with its choices; the default is marked."""
    groups = {
        group: [f"{name}*" if name == choices.get(group) else name for name in names]
        for group, names in groups_of(folder).items()
        if (in_command(group, choices) and group not in _HIDDEN)
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


def _settings(verb: str, overrides: Sequence[str], keys: Sequence[str] | None) -> Iterator[str]:
    """Yield a line for each setting of a composed configuration, or several lines if its comment is long.

    `keys` are the settings to list, in order; None lists all, the command's own settings before those of its choices.
    """
    from omegaconf import OmegaConf

    tree: Any = OmegaConf.to_container(compose(verb, overrides), resolve=False)
    choices = tree.pop("choices")
    comments = _comments(verb, "")
    for key, name in choices.items():
        comments |= _comments(f"{key.partition('@')[0]}/{name}", f"{place(key)}.")
    values = {key: value for key, value in leaves(without_classes(tree)).items() if value != {}}
    for key in keys or ():
        if key not in values:  # a setting of a choice that it implies, such as data.files of data=files
            group, _, last = key.rpartition(".")
            name = next(name for name in groups_of(configuration.config_folder())[group] if last == name)
            values[key] = read_yaml(f"{group}/{name}")[last]
            comments |= _comments(f"{group}/{name}", f"{group}.")
    if keys is None:
        keys = sorted(values, key=lambda key: key.partition(".")[0] in {place(choice) for choice in choices})
    rows = []
    for key in (key for key in keys if key in values):
        is_missing = values[key] == "???"
        comment = f"{'required: ' * is_missing}{comments.get(key, '')}"
        rows.append((f"  {key}={'' if is_missing else written_as(values[key])}", comment))
    width = min(max((len(word) for word, _ in rows), default=0), 34) + 2
    for word, comment in rows:
        wrapped = textwrap.wrap(comment, WIDTH - width) or [""]
        if len(word) >= width and comment:
            wrapped.insert(0, "")
        yield f"{word:{width}}{wrapped[0]}".rstrip()
        yield from (f"{'':{width}}{line}" for line in wrapped[1:])


def _comments(name: str, prefix: str) -> dict[str, str]:
    """Key -> comment, for the settings of a yaml file and of the choice that it changes (`defaults: [unigram]`)."""
    comments: dict[str, str] = {}
    for base in read_yaml(name).get("defaults", []):
        if isinstance(base, str) and base != "_self_":
            comments |= _comments(f"{name.rpartition('/')[0]}/{base}", prefix)
    text = (configuration.config_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    lines = text.splitlines()

    def visit(node: yaml.MappingNode, prefix: str) -> None:
        for key, value in node.value:
            if isinstance(value, yaml.MappingNode) and not value.flow_style:
                visit(value, f"{prefix}{key.value}.")
            elif value.end_mark.line < len(lines):
                beside = lines[value.end_mark.line][value.end_mark.column :]
                below = itertools.takewhile(re.compile(r" \s*#").match, lines[value.end_mark.line + 1 :])
                if comment := " ".join(line.strip().lstrip("# ") for line in (beside, *below)).strip():
                    comments[f"{prefix}{key.value}"] = comment

    if isinstance(root := yaml.compose(text), yaml.MappingNode):
        visit(root, prefix)
    return comments
