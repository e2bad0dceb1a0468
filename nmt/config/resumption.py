"""The settings of a resumed run: the saved configuration with the permitted changes of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt.config.choices import is_choice, place
from nmt.config.composition import at_place, compose, parse
from nmt.config.configuration import ABSENT, EXTENSIBLE, INCIDENTAL, flattened
from nmt.system.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def merge_for_resume(saved: DictConfig, saved_overrides: Sequence[str], overrides: Sequence[str]) -> DictConfig:
    """Return the saved configuration with the changes of this command line.

    The changes are the difference that `overrides` make to the composition of `saved_overrides`. Values that the saved
    configuration already has are not changes. Budget, intervals, workers, device, name and folder of the run may change
    (INCIDENTAL and EXTENSIBLE).

    Raises:
        UserError: other settings would change; the message lists key, saved value and new value.
    """
    from omegaconf import OmegaConf

    # Choices that the run did not name come first: today's defaults may differ.
    saved_overrides = [*unnamed_choices(saved, saved_overrides), *saved_overrides]
    overrides = [at_place(line, saved.choices) for line in overrides]
    named = {key_of(line) for line in overrides}
    unchanged = [line for line in saved_overrides if key_of(line) not in named]
    before = unresolved(compose("train", saved_overrides))
    try:
        asked = unresolved(compose("train", [*unchanged, *overrides]))
    except UserError as error:
        raise UserError(f"The run cannot be resumed with these settings. {error}") from error
    was = unresolved(saved)
    # Named settings are checked even if both compositions agree: advice may have changed them in the saved run.
    touched = [
        key
        for key in dict.fromkeys([*before, *asked])
        if key in named or before.get(key, ABSENT) != asked.get(key, ABSENT)
    ]
    changes = [key for key in touched if was.get(key, ABSENT) != asked.get(key, ABSENT)]
    refused = [key for key in changes if key not in INCIDENTAL | EXTENSIBLE]
    if refused:

        def as_text(values: dict[str, Any], key: str) -> str:
            return str(values[key]) if key in values else "(not there)"

        lines = [f"  {key}: {as_text(was, key)} -> {as_text(asked, key)}" for key in refused]
        raise UserError(
            "These settings cannot change when a run is resumed:\n"
            + "\n".join(lines)
            + "\nLeave them out, or train a new run with another name=. You can change the budget (trainer.steps, "
            "trainer.epochs, trainer.minutes), trainer.accumulate, the intervals of validation, saving and logging, "
            "the workers and the device."
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


def unresolved(config: DictConfig) -> dict[str, Any]:
    """Key -> value of all settings; a value that is defined by another key stays a reference (`${trainer.steps}`)."""
    from omegaconf import OmegaConf

    tree: Any = OmegaConf.to_container(config, resolve=False)
    return flattened(tree)


def unnamed_choices(saved: DictConfig, overrides: Sequence[str]) -> list[str]:
    """The choices of a saved configuration that overrides do not change, as words of a command line.

    If overrides change the encoder or the decoder, the saved choices inside it are left out.
    """
    lines = [at_place(line, saved.choices) for line in overrides]
    named = {key_of(line): line.partition("=")[2] for line in lines}
    changed = [place(key) for key, name in named.items() if is_choice(key) and saved.choices.get(key) != name]
    return [
        f"{key}={name}"
        for key, name in saved.choices.items()
        if key not in named and not any(place(key).startswith(f"{other}.") for other in changed)
    ]


def key_of(line: str) -> str:
    """The key of an override; for a choice at another place, "GROUP@PLACE"."""
    return str(parse("train", line).get_key_element()).lstrip("+")
