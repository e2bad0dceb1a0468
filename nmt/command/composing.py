"""Overrides -> configuration, each checked against what the yaml files hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmt import configuration
from nmt.choices import place
from nmt.command.keys import aliases_of
from nmt.command.suggesting import Groups, in_our_words, unknown_choice, unknown_key, without_value
from nmt.configuration import ABSENT, TARGET, groups_of, look_up
from nmt.errors import UserError
from nmt.limits import fitted, written_as

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig


def compose(config_name: str, overrides: Sequence[str]) -> DictConfig:
    """Compose `config_name`.yaml with overrides (already quoted), checked against what the files hold.

    `data.files=...` without `data=` means `data=files`. Text stays as it was written (`precision=32`), a whole number
    may be written `1e4`. Constructors say what values the settings of a part take; the verb's own are of the kinds of
    their defaults. `choices` of the result names what was chosen, {"attention/score": "general", ...}. The result is
    in struct mode: reading a key that is not there raises.

    Raises:
        UserError: a word without `=`; a setting taken away; a misspelt group, choice or key (with the nearest that
            exist); a value that cannot be read; several values where one is needed.
    """
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = configuration.config_folder()
    groups = groups_of(folder)
    parsed = [parse(config_name, override) for override in overrides]
    keys = {override.key_or_group for override in parsed}
    if "data.files" in keys and "data" not in keys and "files" in groups.get("data", []):
        parsed.insert(0, parse(config_name, "data=files"))
    chosen: list[str] = []
    settings: list[Override] = []
    try:
        for override in _at_their_places(config_name, parsed, groups):
            if override.is_delete():
                key = override.key_or_group
                raise UserError(
                    f"'~{key}' takes away what a run needs. Give it a value, or {key}=null where that has a meaning."
                )
            if override.key_or_group in groups:
                chosen.append(_checked_choice(config_name, groups, override))
            elif override.type == OverrideType.CHANGE and not override.is_hydra_override():
                settings.append(override)
            else:
                chosen.append(line_of(override))
        config, choices = _composed(config_name, chosen)
        choices = {
            key: name for key, name in choices.items() if OmegaConf.is_dict(OmegaConf.select(config, place(key)))
        }
        for override in settings:
            value = _checked_setting(config_name, groups, config, choices, override)
            # As Hydra would do it after composing; done here, since the look-up needs the composition first.
            OmegaConf.update(config, override.key_or_group, value, merge=True)
        # An interpolation that leads nowhere is found now, not in an hour.
        OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(in_our_words(config_name, str(error), lambda: choices_of(config_name))) from error
    OmegaConf.set_struct(config, False)
    config.choices = choices
    OmegaConf.set_struct(config, True)
    return config


def choices_of(config_name: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """Return the choices that `config_name`.yaml and overrides make, by group; at another place, "GROUP@PLACE"."""
    return _composed(config_name, overrides)[1]


def _composed(config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, str]]:
    """Hydra's composition, and the choices that it made."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(configuration.config_folder()), version_base="1.3"):
        config = hydra_compose(config_name, overrides=list(overrides), return_hydra_config=True)
    choices = {key: str(name) for key, name in config.hydra.runtime.choices.items() if not key.startswith("hydra/")}
    OmegaConf.set_struct(config, False)
    config.pop("hydra")
    OmegaConf.set_struct(config, True)
    return config, choices


def _at_their_places(verb: str, overrides: Sequence[Override], groups: Groups) -> list[Override]:
    """The overrides, with `encoder/score=` as the choice of scores that stands in the encoder."""
    unknown = [
        override for override in overrides if "/" in override.key_or_group and override.key_or_group not in groups
    ]
    if not unknown:
        return list(overrides)
    known = [_checked_choice(verb, groups, override) for override in overrides if override.key_or_group in groups]
    choices = choices_of(verb, known)
    return [
        parse(verb, at_place(line_of(override), choices)) if override in unknown else override for override in overrides
    ]


def at_place(word: str, choices: Iterable[str]) -> str:
    """Return `encoder/score=general` as `attention/score@encoder.self_attention.score=general`, if that is a choice.

    The first and the last part must agree with its place, those between may be left out.

    Raises:
        UserError: several choices stand there.
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
    """Read `key=value` in Hydra's grammar.

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
    """Return the words that an override was read from."""
    assert override.input_line is not None  # parse gave it one
    return override.input_line


def _checked_choice(verb: str, groups: Groups, override: Override) -> str:
    """The words of an override that chooses, by the name that the choice has here."""
    group, value = override.key_or_group, override.value()
    if value is None:
        return line_of(override)
    aliases = aliases_of(configuration.config_folder(), group)
    for choice in value if isinstance(value, list) else [value]:
        if isinstance(choice, dict):
            raise UserError(f"{group} is a choice of {', '.join(groups[group])}; set its keys one by one.")
        # Hydra reads `on` and `1` as values; a choice is the name of a file.
        if str(choice) not in [*groups[group], *aliases]:
            raise UserError(unknown_choice(groups, choices_of(verb), verb, group, str(choice)))
    key, equals, written = line_of(override).partition("=")
    return key + equals + aliases.get(written, written)


def _checked_setting(
    verb: str, groups: Groups, config: DictConfig, choices: Mapping[str, str], override: Override
) -> Any:
    """The value to set, looked up in the configuration that the choices give."""
    from omegaconf import OmegaConf

    key, value = override.key_or_group, override.value()
    parent, _, name = key.rpartition(".")
    tree = OmegaConf.to_container(config, resolve=False)
    if name == TARGET:
        group = next((choice.partition("@")[0] for choice in choices if place(choice) == parent), "")
        options = f"{group}= one of {', '.join(groups[group])}" if group else "choices by their names"
        raise UserError(f"{key} cannot be set: classes come with the choices. Give {options}.")
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
    """The value in the form of its default: text as written, 1e4 as 10000. Only what is of no part is judged."""
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
            raise UserError(f"{key}={written}: {error} (it is {written_as(default)} unless you set it).") from error
    return value
