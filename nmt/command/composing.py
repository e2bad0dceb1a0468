"""Overrides -> configuration, each checked against what the yaml files hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import configuration
from nmt.choices import place
from nmt.command.keys import ALIASES, NULLABLE
from nmt.command.suggesting import in_our_words, unknown_key, without_value
from nmt.configuration import ABSENT, TARGET, defaults_of, groups_of, look_up
from nmt.errors import UserError, nearest

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig


def compose(config_name: str, overrides: Sequence[str]) -> DictConfig:
    """Composes `config_name`.yaml with overrides (already quoted), checked against what the files hold.

    `data.files=...` without `data=` means `data=files`. A number given where text stands is text
    (`precision=32`), a whole number may be written `1e4`. The result is in struct mode: reading a key that is
    not there raises.

    Raises:
        UserError: a word without `=`; a setting taken away; a misspelt group, choice or key (with the nearest that
            exist); a value that cannot be read, or of another kind than the default's; several values where one is
            needed.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = configuration.config_folder()
    parsed = [parse(config_name, _by_its_name(override)) for override in overrides]
    keys = {override.key_or_group for override in parsed}
    if "data.files" in keys and "data" not in keys and (folder / "data" / "files.yaml").is_file():
        parsed.insert(0, parse(config_name, "data=files"))
    groups = groups_of(folder)
    composed, settings = [], []
    for override in parsed:
        if override.is_delete():
            key = override.key_or_group
            raise UserError(
                f"'~{key}' takes away what a run needs. Give it a value, or {key}=null where that has a meaning."
            )
        if override.key_or_group in groups:
            _check_choice(config_name, folder, groups, override)
            composed.append(line_of(override))
        elif override.type == OverrideType.CHANGE and not override.is_hydra_override():
            settings.append(override)
        else:
            composed.append(line_of(override))
    try:
        with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
            config = hydra_compose(config_name, overrides=composed, return_hydra_config=True)
        choices = _take_choices(config)
        for override in settings:
            value = _check_setting(config_name, folder, groups, config, override)
            # As Hydra would do it after composing; done here, since the look-up needs the composition first.
            OmegaConf.update(config, override.key_or_group, value, merge=True)
        # An interpolation that leads nowhere is found now, not in an hour.
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(in_our_words(config_name, str(error))) from error
    OmegaConf.set_struct(config, False)
    config.choices = choices
    OmegaConf.set_struct(config, True)
    return config


def _take_choices(config: DictConfig) -> dict[str, str]:
    """Removes what Hydra says of itself, and returns the choices that it made, without those that only set keys."""
    from omegaconf import OmegaConf

    chosen = dict(config.hydra.runtime.choices)
    OmegaConf.set_struct(config, False)
    config.pop("hydra")
    OmegaConf.set_struct(config, True)
    nodes = {key: OmegaConf.select(config, place(key)) for key in chosen if not key.startswith("hydra/")}
    return {key: str(chosen[key]) for key, node in nodes.items() if OmegaConf.is_dict(node)}


def _by_its_name(argument: str) -> str:
    """Returns the override with the name that a choice has here, where it came with an alias."""
    group, equals, choice = argument.partition("=")
    return group + equals + ALIASES.get(group, {}).get(choice, choice)


def parse(verb: str, argument: str, sweep: bool = False) -> Override:
    """Reads `key=value` in Hydra's grammar.

    Args:
        verb: whose command line it stands on.
        argument: a word of it, quoted.
        sweep: whether it may have several values.

    Raises:
        UserError: it cannot be read, or has several values.
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
        # Hydra's grammar stops at brackets, quotes and every letter that is not ASCII.
        shown = value.replace("'", "\\'")
        raise UserError(
            f"'{argument}' cannot be read: it holds a character with a meaning of its own, or a quote or "
            f"bracket that is not closed. Write the value in quotes within quotes: \"{key}='{shown}'\""
        ) from error
    if override.is_sweep_override() and not sweep:
        several = " -m trains a run for each." if verb == "train" else ""
        raise UserError(
            f"'{argument}' names several values where one run takes one.{several} "
            f"If the comma belongs to the value, write \"{key}='{value}'\"; a list is {key}=[{value}]."
        )
    return override


def line_of(override: Override) -> str:
    """Returns the words that an override was read from."""
    assert override.input_line is not None  # parse gave it one
    return override.input_line


def _check_choice(verb: str, folder: Path, groups: dict[str, list[str]], override: Override) -> None:
    group = override.key_or_group
    heads = {name.split("/")[0] for name in defaults_of(folder, verb)}
    if group.split("/")[0] not in heads and not override.is_add() and not override.is_force_add():
        here = f" It has {', '.join(sorted(heads))}." if heads else ""
        cure = "" if verb == "train" else " What the model is stands in the run's folder."
        raise UserError(f"{line_of(override)}: nmt.{verb} has no choice '{group}'.{here}{cure}")
    value = override.value()
    if override.is_delete() or value is None:
        return
    for choice in value if isinstance(value, list) else [value]:
        if isinstance(choice, dict):
            raise UserError(f"{group} is a choice of {', '.join(groups[group])}; set its keys one by one.")
        # Hydra reads `on` and `1` as values; a choice is the name of a file.
        if str(choice) not in groups[group]:
            below = [name for name in groups if name.startswith(f"{group}/") and str(choice) in groups[name]]
            if below:
                raise UserError(f"{choice} is a choice of {below[0]}: write {below[0]}={choice}")
            raise UserError(
                f"There is no {group}={choice}.{nearest(str(choice), groups[group])} "
                f"The choices are {', '.join(groups[group])}."
            )


def _check_setting(
    verb: str, folder: Path, groups: dict[str, list[str]], config: DictConfig, override: Override
) -> Any:
    """Returns the value to set, looked up in the configuration that the choices give."""
    from omegaconf import OmegaConf

    key, value = override.key_or_group, override.value()
    if key.split(".")[-1] == TARGET:
        group = key.removesuffix(f".{TARGET}").replace(".", "/")
        options = f"{group}= one of {', '.join(groups[group])}" if group in groups else "choices by their names"
        raise UserError(f"{key} cannot be set: classes come with the choices. Give {options}.")
    tree = OmegaConf.to_container(config, resolve=False)
    default = look_up(tree, key) if key else ABSENT
    if isinstance(default, str) and "${" in default:
        default = OmegaConf.select(config, key)
    if default is ABSENT or (isinstance(default, dict) and key.replace(".", "/") in groups):
        raise UserError(unknown_key(verb, folder, groups, tree, override))
    return _fit(key, default, value, override.get_value_string())


def _fit(key: str, default: Any, value: Any, written: str) -> Any:
    """Returns `value` if it is of the kind that `default` is, or as that kind where nothing is lost by it."""
    if any(isinstance(side, str) and ("${" in side or side == "???") for side in (default, value)):
        return value
    if key in NULLABLE and value is not None:
        default = NULLABLE[key]() if default is None else NULLABLE[key](default)
    if default is None:
        return value
    if isinstance(default, dict):
        some = ", ".join(f"{key}.{name}" for name in list(default)[:3])
        raise UserError(f"{key} is a group of settings; set them one by one: {some}.")
    if value is None:
        if key in NULLABLE or key.startswith("data."):
            return value
        raise UserError(f"{key} cannot be null; {_expected(key, default)}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = number and math.isfinite(value) and value == int(value)
        value = int(value) if fits else value
    elif isinstance(default, float):
        fits = number and not math.isnan(value)
    elif isinstance(default, list):
        fits = isinstance(value, list)
    else:
        fits = not isinstance(value, list | dict)
        value = value if isinstance(value, str) else written.strip()
    if not fits:
        raise UserError(f"{key}={written}: {_expected(key, default)}")
    return value


def _expected(key: str, default: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (list, "a list, written [a,b]"),
        (str, "one word or text"),
    )
    kind = next(words for type_, words in kinds if isinstance(default, type_))
    if key in NULLABLE:
        return f"{key} takes {kind}, or null."
    shown = str(default).lower() if isinstance(default, bool) else default
    return f"{key} takes {kind} (it is {shown} unless you set it)."
