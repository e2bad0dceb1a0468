"""The trainer's state as plain tensors and containers: reading it cannot run code."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from nmt.compat_weights import upgrade_state
from nmt.errors import UserError
from nmt.files import replace_atomically


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Writes the trainer's state."""
    with replace_atomically(path) as temporary:
        try:
            with temporary.open("wb") as file:
                torch.save(state, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # torch's zip writer says a full disk in its own way
                raise error.__context__ from None
            raise


def load_state(path: Path) -> dict[str, Any]:
    """Reads the trainer's state; nothing in it is executed.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: there is nothing to go on from. Train anew under another name.") from error
    except Exception as error:
        raise _damaged(path) from error
    if not isinstance(state, dict):
        raise _damaged(path)
    return upgrade_state(state)


def check_state(path: Path, state: dict[str, Any], model: nn.Module) -> None:
    """Looks whether a model can take up a state, before anything of its run is changed (UserError if not)."""
    needed = ("model", "optimizer", "averaging", "scheduler", "step", "epoch", "batch", "seconds", "best", "rng")
    odd = [key for key in needed if key not in state]
    weights = state.get("model")
    if not odd and isinstance(weights, dict):
        own = dict(model.named_parameters())
        odd = sorted(name for name in own if getattr(weights.get(name), "shape", None) != own[name].shape)
    if odd:
        raise UserError(f"{path} does not fit this run: {', '.join(odd[:3])}. Train anew under another name.")


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is damaged and cannot be gone on from. Train anew under another name.")
