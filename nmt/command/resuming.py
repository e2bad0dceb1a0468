"""What a command line may change of a run that is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt.choices import is_choice
from nmt.command.composing import at_place, compose, parse
from nmt.configuration import ABSENT, EXTENSIBLE, INCIDENTAL, flattened
from nmt.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def merge_for_resume(
    saved: DictConfig, saved_overrides: Sequence[str], overrides: Sequence[str], config_name: str = "train"
) -> DictConfig:
    """Return the saved configuration with what this command line changes, where a resumed run may change it.

    What the line changes is the difference that `overrides` make to the composition of `saved_overrides`;
    asking for what the saved configuration says already is no difference. Budget, cadence, workers, device
    and the run's own name and place may change (INCIDENTAL and EXTENSIBLE).

    Raises:
        UserError: any other difference, each listed as key, saved value and asked value.
    """
    from omegaconf import OmegaConf

    def unresolved(config: DictConfig) -> dict[str, Any]:
        # A value that follows from another one (`${trainer.steps}`) is no difference of its own.
        tree: Any = OmegaConf.to_container(config, resolve=False)
        return flattened(tree)

    # The run's choices first: those that it did not name are not today's defaults.
    first = {_key(config_name, line) for line in saved_overrides}
    saved_overrides = [*(f"{key}={name}" for key, name in saved.choices.items() if key not in first), *saved_overrides]
    overrides = [at_place(line, saved.choices) for line in overrides]
    named = {_key(config_name, line) for line in overrides}
    kept = [line for line in saved_overrides if _key(config_name, line) not in named]
    before = unresolved(compose(config_name, saved_overrides))
    try:
        asked = unresolved(compose(config_name, [*kept, *overrides]))
    except UserError as error:
        raise UserError(f"A resumed run keeps what it is, and this command does not fit it. {error}") from error
    was = unresolved(saved)
    # What the line names counts even where the compositions agree: advice may have told the run otherwise.
    touched = [
        key
        for key in dict.fromkeys([*before, *asked])
        if key in named or before.get(key, ABSENT) != asked.get(key, ABSENT)
    ]
    changes = [key for key in touched if was.get(key, ABSENT) != asked.get(key, ABSENT)]
    refused = [key for key in changes if key not in INCIDENTAL | EXTENSIBLE]
    if refused:

        def shown(values: dict[str, Any], key: str) -> str:
            return str(values[key]) if key in values else "(not there)"

        lines = [f"  {key}: {shown(was, key)} -> {shown(asked, key)}" for key in refused]
        raise UserError(
            "A resumed run keeps what it is. This command would change\n"
            + "\n".join(lines)
            + "\nLeave these out to resume, or train anew under another name=. "
            "Budget (trainer.steps, .epochs, .minutes), cadence, workers and device may change."
        )
    merged = saved.copy()
    OmegaConf.set_struct(merged, False)
    for key in changes:
        if is_choice(key):
            merged.choices[key] = asked[key]
        else:
            OmegaConf.update(merged, key, asked.get(key))
    OmegaConf.set_struct(merged, True)
    return merged


def _key(verb: str, line: str) -> str:
    """The key of an override, with the place of a choice that does not stand at its group's."""
    return str(parse(verb, line).get_key_element()).lstrip("+")
