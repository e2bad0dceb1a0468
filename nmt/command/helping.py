"""What `--help` prints."""

from __future__ import annotations

from pathlib import Path

from nmt import configuration
from nmt.command.keys import ALIASES, EXAMPLES
from nmt.configuration import defaults_of, groups_of


def help_text(verb: str) -> str:
    """Returns what `--help` prints: what the verb's yaml says, and the choices in the folders beside it."""
    folder = configuration.config_folder()
    text = (folder / f"{verb}.yaml").read_text(encoding="utf-8")
    summary = " ".join(line[1:].strip() for line in _head(text))
    defaults = defaults_of(folder, verb)
    heads = {name.split("/")[0] for name in defaults}
    groups = {group: choices for group, choices in groups_of(folder).items() if group.split("/")[0] in heads}
    width = max((len(group) for group in groups), default=0)
    sweep = folder / "sweep.yaml"
    several = verb == "train" and sweep.is_file()
    options = f"[key=value ...]{' [-m]' if several else ''} [--cfg] [--version] [--help]"
    lines = [f"usage: python -m nmt.{verb} {options}", "", summary, ""]
    lines += ["examples:", *(f"  {example}" for example in EXAMPLES.get(verb, ())), ""]
    if groups:
        lines.append("choices, one of each (GROUP=CHOICE; * what it is unless you choose):")
        for group, choices in groups.items():
            default = defaults.get(group, _nested_default(folder, group))
            names = " ".join(f"{choice}*" if choice == default else choice for choice in choices)
            lines.append(f"  {group:{width}}  {names}")
        for group in groups.keys() & ALIASES.keys():
            also = ", ".join(f"{alias} = {choice}" for alias, choice in ALIASES[group].items())
            lines.append(f"  {group} also answers to {also}.")
        lines.append("")
    settings = [line for line in _settings(text) if line.strip()]
    if settings:
        lines += [
            "settings (KEY=VALUE, nested ones with a dot: model.dropout=0.2):",
            *(f"  {line}" for line in settings),
        ]
        lines.append("")
    if several:
        text = sweep.read_text(encoding="utf-8")
        lines += [*(line[1:].strip() for line in _head(text)), *(f"  {line}" for line in _settings(text) if line)]
        lines.append("")
    lines.append(f"Each choice has settings of its own: python -m nmt.{verb} --cfg prints them all, with this line's")
    lines.append("choices and values; null means none. Settings may stand in any order.")
    return "\n".join(lines)


def _head(text: str) -> list[str]:
    """Returns the comment lines that a yaml file opens with."""
    head = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            head.append(line)
    return head


def _settings(text: str) -> list[str]:
    """Returns the lines of a yaml file after its head and its defaults list."""
    lines = text.splitlines()[len(_head(text)) :]
    kept, in_defaults = [], False
    for line in lines:
        if line.startswith("defaults:"):
            in_defaults = True
        elif in_defaults and (line.startswith((" ", "-")) or not line.strip()):
            continue
        elif not line.startswith("hydra:"):
            in_defaults = False
            kept.append(line)
    return kept


def _nested_default(folder: Path, group: str) -> str | None:
    """Returns what the files of the group above choose in `group`, if they agree."""
    above, _, name = group.rpartition("/")
    found = {
        defaults_of(folder, path.relative_to(folder).with_suffix("").as_posix()).get(name)
        for path in sorted((folder / above).glob("*.yaml"))
        if above
    }
    found.discard(None)
    return found.pop() if len(found) == 1 else None
