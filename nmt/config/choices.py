"""The choices of the configuration, and how a run stores them.

A choice is a yaml file in its group's folder, `configs/GROUP/CHOICE.yaml`. A composed configuration names its choices
under `choices`, {"decoder": "luong", "attention/score": "general", ...}. A group that is used in several places has its
place after an @. A saved configuration has these names and the settings, and no class. On loading, each class
(`_target_`) comes from the installed file. So classes may move, and a run from a stranger cannot name code.
"""

import functools
from collections.abc import Iterable
from typing import Any

from nmt.config.configuration import TARGET, config_folder, groups_of, look_up, read_yaml, without_classes
from nmt.system.errors import UnknownSettingError, UserError, nearest


@functools.cache
def _installed() -> dict[str, list[str]]:
    return groups_of(config_folder())


def is_choice(key: str) -> bool:
    """Whether a key of a configuration names a group of choices, and not a setting."""
    return key.partition("@")[0] in _installed()


def place(key: str) -> str:
    """The place of a choice's settings: "attention.score" for the key "attention/score"."""
    group, _, package = key.partition("@")
    return package or group.replace("/", ".")


@functools.cache
def owners_of(group: str) -> dict[str, list[str]]:
    """Group -> its choices whose files include a choice of `group`.

    {"decoder": ["conv", "transformer"], "encoder": [...]} for "positions"
    """

    def brings(name: str) -> bool:
        entries = [entry for entry in read_yaml(name).get("defaults", []) if isinstance(entry, dict)]
        return any(str(key).startswith(f"/{group}@") for entry in entries for key in entry)

    owners = {other: [name for name in names if brings(f"{other}/{name}")] for other, names in _installed().items()}
    return {other: names for other, names in owners.items() if names}


def in_command(group: str, choices: Iterable[str]) -> bool:
    """Whether a command with these choices ("GROUP" or "GROUP@PLACE") has choices of `group`."""
    heads = {choice.partition("@")[0].partition("/")[0] for choice in choices}
    return group.partition("/")[0] in heads or bool(heads & owners_of(group).keys())


@functools.cache
def class_of(group: str, choice: str) -> str:
    """The class of a choice, as a dotted path.

    Raises:
        UserError: there is no such group or choice, or its file names no class.
    """
    options = _installed().get(group)
    if options is None:
        raise UnknownSettingError(f"there is no group of choices '{group}'.{nearest(group, _installed())}")
    if choice not in options:
        known = f"The choices are {', '.join(options)}."
        raise UnknownSettingError(f"there is no {group}={choice}.{nearest(choice, options)} {known}")
    node = read_yaml(f"{group}/{choice}")
    if TARGET in node:
        return str(node[TARGET])
    for base in node.get("defaults", []):  # the file changes a few settings of another choice
        if isinstance(base, str) and base in options:
            return class_of(group, base)
    raise UserError(f"{group}/{choice}.yaml names no class.")


def with_classes(tree: dict[str, Any]) -> dict[str, Any]:
    """Add to a configuration the class of each of its `choices`, as named in the installed files.

    Raises:
        UserError: `choices` has an unknown name, or its settings are missing.
    """
    choices = tree.get("choices")
    if not isinstance(choices, dict):
        raise UnknownSettingError("it has no choices.")
    complete: dict[str, Any] = without_classes(tree)
    if complete != tree:
        raise UserError(f"it names a class ({TARGET}), which saved runs never do. Do not use this run.")
    for key, choice in choices.items():
        node = look_up(complete, place(str(key)))
        if not isinstance(node, dict):
            raise UnknownSettingError(f"it has {key}={choice}, but {place(str(key))} is missing.")
        node[TARGET] = class_of(str(key).partition("@")[0], str(choice))
    return complete
