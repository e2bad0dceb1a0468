"""What the user may have meant by a word that cannot be read, a key that is not there, an error of Hydra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import configuration
from nmt.configuration import ABSENT, groups_of, leaves, look_up
from nmt.errors import nearest

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


def without_value(verb: str, argument: str) -> str:
    """Says what the user may have meant by a word without `=`."""
    if argument == "=":
        return "A lone '=': write key=value without spaces around the equals sign."
    if argument.startswith("-"):
        name = argument.lstrip("-").replace("-", "_")
        hint = f" Settings are written without dashes, as {name}=VALUE." if len(name) > 1 else ""
        return f"'{argument}' is no option of nmt.{verb}.{hint} See python -m nmt.{verb} --help."
    path = Path(argument)
    if verb in ("translate", "evaluate", "align") and path.is_dir():
        return f"'{argument}' says not what it is: write run={argument}"
    if verb == "translate" and path.is_file():
        return f"'{argument}' says not what it is: write input={argument}"
    if verb == "train" and path.is_file():
        return f"'{argument}' says not what it is: write data.files=[SOURCE_FILE,TARGET_FILE]"
    from omegaconf import OmegaConf

    folder = configuration.config_folder()
    settings = {str(key) for key in OmegaConf.load(folder / f"{verb}.yaml")} - {"defaults", "hydra"}
    groups = groups_of(folder)
    help_ = f"See python -m nmt.{verb} --help."
    if argument in settings or argument in groups:
        return f"'{argument}' needs a value: write {argument}=VALUE. {help_}"
    near = nearest(argument, groups if "/" in argument else [*settings, *groups], limit=2)
    return f"'{argument}' is not of the form key=value.{near} {help_}"


def unknown_key(verb: str, folder: Path, groups: dict[str, list[str]], tree: object, override: Override) -> str:
    """Says what the user may have meant by a key that the configuration does not have."""
    from omegaconf import OmegaConf

    key, written = override.key_or_group, override.get_value_string()
    sweep = folder / "sweep.yaml"
    if verb == "train" and sweep.is_file() and key in OmegaConf.load(sweep):
        return f"{key} is a setting of sweeps: python -m nmt.train -m {key}={written} ..."
    if key.replace(".", "/") in groups:
        return f"{key} is a choice, which is written with a slash: {key.replace('.', '/')}={written}"
    if "/" in key:
        dotted = key.replace("/", ".")
        if look_up(tree, dotted) is not ABSENT:
            return f"{key} is a setting, which is written with a dot: {dotted}={written}"
        near = nearest(key, groups, limit=2)
        return f"There is no choice '{key}' in nmt.{verb}.{near} There are {', '.join(groups)}."
    owners = []
    for group, choices in groups.items():
        rest = key.removeprefix(group.replace("/", ".") + ".")
        if rest != key:
            for choice in choices:
                content = OmegaConf.to_container(OmegaConf.load(folder / group / f"{choice}.yaml"), resolve=False)
                if look_up(content, rest) is not ABSENT:
                    owners.append(f"{group}={choice}")
    if owners:
        return f"{key} is a setting of {' or '.join(owners)}, which this command does not choose: add it."
    names = list(dict.fromkeys([*leaves(tree), *_of_choices(folder, groups, tree)]))
    alike = [group for group in groups if group.split("/")[-1] == key]
    if alike:
        return f"{key} is a choice with a longer name: {alike[0]}={written}"
    same_end = [name for name in names if name.split(".")[-1] == key.split(".")[-1]]
    if same_end:
        near = f" Did you mean {' or '.join(repr(name) for name in same_end[:3])}?"
    else:
        near = nearest(key, [*names, *groups], limit=2)
    return f"There is no setting '{key}' in nmt.{verb}.{near} python -m nmt.{verb} --cfg prints them all."


def _of_choices(folder: Path, groups: dict[str, list[str]], tree: object) -> Iterator[str]:
    """The settings of every choice that the command has, chosen or not."""
    from omegaconf import OmegaConf

    for group, choices in groups.items():
        if isinstance(tree, dict) and group.split("/")[0] in tree:
            for choice in choices:
                content = OmegaConf.to_container(OmegaConf.load(folder / group / f"{choice}.yaml"), resolve=False)
                known = leaves(content) if isinstance(content, dict) else ()
                yield from (
                    f"{group.replace('/', '.')}.{name}" for name in known if not name.startswith(("_", "defaults"))
                )


def in_our_words(verb: str, message: str) -> str:
    """Returns what Hydra or OmegaConf said, less its advice to add the key by force."""
    missing = re.search(r"Could not override '([^']+)'\.\s*No match in the defaults list", message)
    if missing:
        return (
            f"{missing[1]} has nothing to choose in this command: another choice on the line does without. "
            f"python -m nmt.{verb} --cfg prints what there is."
        )
    lines = [line.strip() for line in message.splitlines()]
    kept = [
        line for line in lines if line and not re.match(r"(To append|See https|Set the env|full_key|object_type)", line)
    ]
    return "The configuration cannot be put together: " + " ".join(kept)
