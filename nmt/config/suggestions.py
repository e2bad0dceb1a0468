"""Messages for words that cannot be parsed, unknown keys and errors of Hydra, with suggestions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config import configuration
from nmt.config.choices import in_command, owners_of, place
from nmt.config.configuration import ABSENT, groups_of, leaves, look_up, read_yaml
from nmt.system.errors import nearest

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

# Names of all choices, by group.
Groups = Mapping[str, Sequence[str]]


def without_value(verb: str, argument: str) -> str:
    """The message for a word without `=`."""
    if argument == "=":
        return "A lone '=': write key=value without spaces around the equals sign."
    if argument.startswith("-"):
        name = argument.lstrip("-").replace("-", "_")
        hint = f" Settings are written without dashes, as {name}=VALUE." if len(name) > 1 else ""
        return f"'{argument}' is not an option of nmt.{verb}.{hint} See python -m nmt.{verb} --help."
    path = Path(argument)
    if verb in ("translate", "evaluate", "align", "contrast", "export") and path.is_dir():
        return f"'{argument}' has no key. Did you mean run={argument}?"
    if verb == "translate" and path.is_file():
        return f"'{argument}' has no key. Did you mean input={argument}?"
    if verb == "train" and path.is_file():
        return f"'{argument}' has no key. Did you mean data.files=[SOURCE_FILE,TARGET_FILE]?"
    content = read_yaml(verb)
    settings = content.keys() - {"defaults", "hydra"}
    heads = {head for entry in content.get("defaults", []) if isinstance(entry, dict) for head in entry}
    groups = [group for group in groups_of(configuration.config_folder()) if group.split("/")[0] in heads]
    help_ = f"See python -m nmt.{verb} --help."
    if argument in settings or argument in groups:
        return f"'{argument}' needs a value: write {argument}=VALUE. {help_}"
    near = nearest(argument, groups if "/" in argument else [*settings, *groups], limit=2)
    return f"'{argument}' is not of the form key=value.{near} {help_}"


def unknown_choice(groups: Groups, choices: Iterable[str], verb: str, group: str, name: str) -> str:
    """The message for an unknown choice `group=name`."""
    if not in_command(group, choices):
        return _no_group(verb, group, choices)
    below = [other for other in groups if other.startswith(f"{group}/") and name in groups[other]]
    if below:
        return f"{name} is a choice of {below[0]}: write {below[0]}={name}"
    return f"There is no {group}={name}.{nearest(name, groups[group])} The choices are {', '.join(groups[group])}."


def _no_group(verb: str, group: str, choices: Iterable[str]) -> str:
    heads = {choice.partition("@")[0].partition("/")[0] for choice in choices}
    there = f" It has {', '.join(sorted(heads))}." if heads else ""
    fixed = "" if verb == "train" else " The model is fixed by the run."
    return f"There is no choice '{group}' in this command.{there}{fixed}"


def unknown_key(verb: str, groups: Groups, tree: object, choices: Iterable[str], override: Override) -> str:
    """The message for an unknown key of a command, by its configuration (`tree`) and its choices."""
    key, written = override.key_or_group, override.get_value_string()
    every, groups = groups, {group: names for group, names in groups.items() if in_command(group, choices)}
    slashed, dotted = key.replace(".", "/"), key.replace("/", ".")
    places = {place(choice): choice for choice in choices}
    if verb == "train" and key.partition(".")[0] in read_yaml("sweep"):
        return f"{key} is a setting of sweeps: python -m nmt.train -m {key}={written} ..."
    if key in places or slashed in groups:
        return f"{key} is a choice, which is written with a slash: {slashed}={written}"
    if "/" in key:
        if look_up(tree, dotted) is not ABSENT:
            return f"{key} is a setting, which is written with a dot: {dotted}={written}"
        first, _, last = key.rpartition("/")
        if owners := owners_of(last).get(first):
            return f"{key} belongs to {' or '.join(f'{first}={name}' for name in owners)}. Add one of them."
        near = nearest(key, [*groups, *(path.replace(".", "/") for path in places if "." in path)], limit=2)
        return f"There is no choice '{key}' in nmt.{verb}.{near} There are {', '.join(groups)}."
    first = key.split(".")[0]
    if verb != "train" and first not in groups and (first in every or isinstance(read_yaml("train").get(first), dict)):
        return f"There is no setting '{key}': the run fixes its {first}."
    others = _of_choices(groups, places)
    if key in others:
        fix = "one of them" if len(others[key]) > 1 else "this choice"
        return f"{key} belongs to {' or '.join(others[key])}. Add {fix}."
    names = list(dict.fromkeys([*leaves(tree), *others]))
    alike = [group for group in groups if group.split("/")[-1] == key]
    if alike:
        return f"{key} is a choice with a longer name: {alike[0]}={written}"
    same_end = [name for name in names if name.split(".")[-1] == key.split(".")[-1]]
    if same_end:
        near = f" Did you mean {' or '.join(repr(name) for name in same_end[:3])}?"
    else:
        near = nearest(key, [*names, *groups], limit=2)
    return f"There is no setting '{key}' in nmt.{verb}.{near} python -m nmt.{verb} --cfg prints them all."


def _of_choices(groups: Groups, places: Mapping[str, str]) -> dict[str, list[str]]:
    """The settings of all choices of the command: {key: choices that have it}."""
    owners: dict[str, list[str]] = {}
    for dotted, choice in places.items():
        group = choice.partition("@")[0]
        for name in groups[group]:
            for setting in leaves(read_yaml(f"{group}/{name}")):
                if not setting.startswith(("_", "defaults")):
                    owners.setdefault(f"{dotted}.{setting}", []).append(f"{choice}={name}")
    return owners


def in_our_words(verb: str, message: str, choices: Callable[[], Iterable[str]]) -> str:
    """Return the message of Hydra or OmegaConf without its advice to add the key with `+`."""
    missing = re.search(r"Could not override '([^'@]+)[^']*'\.\s*No match in the defaults list", message)
    if missing:
        group = missing[1]
        if not in_command(group, choices()):
            return _no_group(verb, group, choices())
        if owners := owners_of(group):
            return f"{group} is a choice of {' and '.join(owners)}: write {next(iter(owners))}/{group}=CHOICE."
        return (
            f"{group}= does not apply: another choice in this command replaces it. Leave it out, or see "
            f"python -m nmt.{verb} --cfg."
        )
    lines = [line.strip() for line in message.splitlines()]
    message_lines = [
        line for line in lines if line and not re.match(r"(To append|See https|Set the env|full_key|object_type)", line)
    ]
    return "Invalid configuration: " + " ".join(message_lines)
