"""Overrides -> configuration, checked against the yaml files."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmt.config import configuration
from nmt.config.choices import place
from nmt.config.configuration import ABSENT, TARGET, groups_of, look_up
from nmt.config.keys import aliases_of
from nmt.config.suggestions import Groups, in_our_words, unknown_choice, unknown_key, without_value
from nmt.system.errors import UserError
from nmt.system.limits import fitted, written_as

if TYPE_CHECKING:
    from pathlib import Path

    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig


def compose(config_name: str, overrides: Sequence[str]) -> DictConfig:
    """Compose `config_name`.yaml with quoted overrides, checked against the yaml files.

    `data.files=...` without `data=` means `data=files`. Text stays as it is written (`precision=32`); an integer may be
    written `1e4`. The constructor of a part checks the part's settings; the command's own settings have the types of
    their defaults. `choices` of the result maps groups to choices, {"attention/score": "general", ...}. The result is
    in struct mode: reading a missing key raises an error.

    Raises:
        UserError: a word without `=`; a removed setting; a misspelt group, choice or key (with the nearest names); an
            invalid value; several values where one is needed.
    """
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = configuration.config_folder()
    groups = groups_of(folder)
    parsed = [parse(config_name, override) for override in overrides]
    keys = {override.key_or_group for override in parsed}
    if keys & groups.keys():
        of_verb = configuration.read_yaml(config_name)  # in commands where data= is a setting, it is not a group
        groups = {group: names for group, names in groups.items() if of_verb.get(group, ABSENT) is not None}
    if "data.files" in keys and "data" not in keys and "files" in groups.get("data", []):
        parsed.insert(0, parse(config_name, "data=files"))
    group_overrides: list[str] = []
    settings: list[Override] = []
    try:
        for override in _at_their_places(config_name, parsed, groups):
            if override.is_delete():
                key = override.key_or_group
                raise UserError(f"'~{key}': a setting cannot be removed. Set it: {key}=VALUE.")
            if override.key_or_group in groups:
                group_overrides.append(_checked_choice(config_name, groups, override))
            elif override.type == OverrideType.CHANGE and not override.is_hydra_override():
                settings.append(override)
            else:
                group_overrides.append(line_of(override))
        config, choices = _composed(config_name, group_overrides)
        choices = {
            key: name for key, name in choices.items() if OmegaConf.is_dict(OmegaConf.select(config, place(key)))
        }
        for override in {each.key_or_group: each for each in settings}.values():  # the last of each counts
            value = _checked_setting(config_name, groups, config, choices, override)
            # Hydra would do this after composing, but the look-up needs the composition first.
            OmegaConf.update(config, override.key_or_group, value, merge=True)
        # Fail on a broken interpolation now, not in an hour.
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(in_our_words(config_name, str(error), lambda: choices_of(config_name))) from error
    OmegaConf.set_struct(config, False)
    config.choices = choices
    OmegaConf.set_struct(config, True)
    return config


def choices_of(config_name: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """Return the choices of `config_name`.yaml with overrides, by "GROUP" or "GROUP@PLACE"."""
    return _composed(config_name, overrides)[1]


def _composed(config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, str]]:
    """Compose with Hydra; return the configuration and its choices."""
    config, choices = _once_composed(configuration.config_folder(), config_name, tuple(overrides))
    return copy.deepcopy(config), dict(choices)


@functools.lru_cache(maxsize=256)  # a sweep and its checks compose the same choices repeatedly, 0.1 s each
def _once_composed(folder: Path, config_name: str, overrides: tuple[str, ...]) -> tuple[DictConfig, dict[str, str]]:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
        config = hydra_compose(config_name, overrides=list(overrides), return_hydra_config=True)
    choices = {key: str(name) for key, name in config.hydra.runtime.choices.items() if not key.startswith("hydra/")}
    OmegaConf.set_struct(config, False)
    config.pop("hydra")
    OmegaConf.set_struct(config, True)
    return config, choices


def _at_their_places(verb: str, overrides: Sequence[Override], groups: Groups) -> list[Override]:
    """Replace short keys of choices in overrides, such as `encoder/score=`, by the full name with its place.

    Choices near the top decide which choices exist below them, so their keys are replaced first.
    """
    placed = list(overrides)
    pending = {
        number: line_of(override)
        for number, override in enumerate(overrides)
        if override.package or ("/" in override.key_or_group and override.key_or_group not in groups)
    }
    while pending:
        known = [override for number, override in enumerate(placed) if number not in pending]
        choices = choices_of(
            verb, [_checked_choice(verb, groups, override) for override in known if override.key_or_group in groups]
        )
        words = {number: at_place(word, choices) for number, word in pending.items()}
        depths = {number: _depth(word) for number, word in words.items()}
        for number in [number for number in pending if depths[number] == min(depths.values())]:
            placed[number] = parse(verb, words[number])
            del pending[number]
    return placed


def _depth(word: str) -> float:
    """The depth of the place in `GROUP@PLACE=CHOICE`; infinite without a place."""
    _, at, dotted = word.partition("=")[0].partition("@")
    return dotted.count(".") if at else float("inf")


def at_place(word: str, choices: Iterable[str]) -> str:
    """Return `encoder/score=general` as `attention/score@encoder.self_attention.score=general`, if that is a choice.

    The first and the last part of the key must agree with the place; parts between them may be omitted.

    Raises:
        UserError: the word fits several choices.
    """
    key, equals, value = word.partition("=")
    if "/" not in key:
        return word
    first, *between, last = key.lstrip("+").split("/")
    fitting = []
    for choice in choices:
        group, at, dotted = choice.partition("@")
        start, *steps = dotted.split(".")
        ends = {group.split("/")[-1], steps[-1]} if at and steps else set()
        if start == first and last in ends and all(part in steps for part in between):
            fitting.append(choice)
    if len(fitting) > 1:
        raise UserError(
            f"{word} has several meanings. Write one of {' '.join(f'{choice}={value}' for choice in fitting)}"
        )
    return f"{fitting[0]}{equals}{value}" if fitting else word


def parse(verb: str, argument: str, sweep: bool = False) -> Override:
    """Read `key=value`, a quoted word of a command line, in Hydra's grammar; in a `sweep` it may have several values.

    Raises:
        UserError: the word cannot be parsed, or has several values outside a sweep.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if "=" not in argument and not argument.startswith("~"):
        raise UserError(without_value(verb, argument))
    key, _, value = argument.partition("=")
    if key != key.strip() or not key:
        raise UserError(f"'{argument}': write key=value without spaces around the equals sign.")
    if key.startswith("-"):
        bare = key.lstrip("-").replace("-", "_")
        raise UserError(f"'{argument}': settings are written without dashes: {bare}={value}")
    try:
        override: Override = OverridesParser.create().parse_overrides([argument])[0]
    except HydraException as error:
        # Hydra's grammar fails on brackets, quotes and all letters outside ASCII.
        escaped = value.replace("'", "\\'")
        raise UserError(
            f"'{argument}' cannot be parsed: the value has a special character, or a quote or bracket that is not "
            f"closed. Quote it twice: \"{key}='{escaped}'\""
        ) from error
    if override.is_sweep_override() and not sweep:
        several = " To train one run per value, add -m and name=SWEEP." if verb == "train" else ""
        raise UserError(
            f"'{argument}' has several values, but a run takes one.{several} "
            f"If the comma belongs to the value, write \"{key}='{value}'\"; a list is {key}=[{value}]."
        )
    return override


def line_of(override: Override) -> str:
    """Return the text of an override."""
    assert override.input_line is not None  # set by `parse`
    return override.input_line


def _checked_choice(verb: str, groups: Groups, override: Override) -> str:
    """The text of an override that selects a choice, with aliases resolved (UserError for an unknown choice)."""
    group, value = override.key_or_group, override.value()
    aliases = aliases_of(configuration.config_folder(), group)
    for choice in value if isinstance(value, list) else [value]:
        if isinstance(choice, dict):
            raise UserError(f"{group} is a choice of {', '.join(groups[group])}; set its keys one by one.")
        # Hydra reads `on` and `1` as values, but a choice is the name of a file.
        name = "null" if choice is None else str(choice)
        if name not in [*groups[group], *aliases]:
            raise UserError(unknown_choice(groups, choices_of(verb), verb, group, name))
    key, equals, written = line_of(override).partition("=")
    return key + equals + aliases.get(written, written)


def _checked_setting(
    verb: str, groups: Groups, config: DictConfig, choices: Mapping[str, str], override: Override
) -> Any:
    """The value to set, checked against the composed configuration (UserError)."""
    from omegaconf import OmegaConf

    key, value = override.key_or_group, override.value()
    parent, _, name = key.rpartition(".")
    tree = OmegaConf.to_container(config, resolve=False)
    if name == TARGET:
        group = next((choice.partition("@")[0] for choice in choices if place(choice) == parent), "")
        options = " or ".join(f"{group}={name}" for name in groups[group]) if group else "GROUP=CHOICE"
        raise UserError(f"{key} cannot be set. Choose by name: {options}.")
    default = look_up(tree, key) if key else ABSENT
    if isinstance(default, str) and "${" in default:
        default = OmegaConf.select(config, key)
    if default is ABSENT or (isinstance(default, dict) and key in map(place, choices)):
        raise UserError(unknown_key(verb, groups, tree, choices, override))
    if isinstance(default, dict):
        some = ", ".join(f"{key}.{setting}" for setting in list(default)[:3])
        raise UserError(f"{key} is a group of settings; set them one by one: {some}.")
    of_part = isinstance(node := look_up(tree, parent), dict) and TARGET in node
    return _in_form(key, default, value, override.get_value_string(), of_part)


def _in_form(key: str, default: Any, value: Any, written: str, of_part: bool) -> Any:
    """The value with the type of its default: text as written, 1e4 as 10000. Parts check their own settings."""
    if any(isinstance(side, str) and ("${" in side or side == "???") for side in (default, value)):
        return value
    if isinstance(default, str) and isinstance(value, bool | int | float):
        return written.strip()
    if isinstance(value, float) and value.is_integer() and not isinstance(default, float):
        value = int(value)
    if not of_part and default is not None:
        try:
            return fitted(value, type(default))
        except ValueError as error:
            raise UserError(f"{key}={written}: {error} (default: {written_as(default)}).") from error
    return value
