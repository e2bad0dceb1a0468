"""Weights as safetensors: reading them cannot run code."""

import hashlib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from nmt.model.seq2seq import Seq2Seq
from nmt.system.errors import UserError, damaged
from nmt.system.integrity import check, damage, replacing

_IDENTITY = "nmt"  # in the metadata of the file


def save_weights(path: Path, model: Seq2Seq) -> None:
    """Write the model's parameters (tied ones once) with the model's identity, and the checksum of the file."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}
    with replacing(path.parent, path.name) as temporary:
        try:
            safetensors.torch.save_file(tensors, temporary, {_IDENTITY: _written(model.identity)})
        except SafetensorError as error:
            raise _os_error(error) from error


def _os_error(error: SafetensorError) -> OSError:
    """The operating system's error; safetensors has its number only in the text of the message."""
    if number := re.search(r"\(os error (\d+)\)", str(error)):
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(None, str(error))


def _written(identity: Mapping[str, str]) -> str:
    """A model's identity as one metadata entry: several entries would have a different order in each file."""
    return "".join(f"{key}\t{value}\n" for key, value in identity.items())


def strange(identity: Mapping[str, str], model: Seq2Seq) -> list[str]:
    """The keys of an identity whose values differ from the model's."""
    model_identity = model.identity
    return [key for key, value in identity.items() if model_identity.get(key) != value]


def not_finite(tree: object, name: str = "") -> str:
    """The name of the first tensor or number in containers that has NaN or infinity; "" if there is none."""
    if isinstance(tree, Tensor):
        counts = not tree.is_floating_point() or not tree.numel()
        # One pass without a copy; both extremes are NaN if any number is.
        return "" if counts or bool(torch.stack(tree.detach().aminmax()).isfinite().all()) else name
    if isinstance(tree, float):
        return "" if math.isfinite(tree) else name
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list | tuple) else ()
    return next(filter(None, (not_finite(part, f"{name}.{key}".lstrip(".")) for key, part in parts)), "")


def lost(path: Path) -> str:
    """The reason why a weight file cannot be used: "missing" or "damaged", else ""."""
    try:
        if damage(path):
            return "damaged"
        with safetensors.safe_open(path, "pt") as file:
            return "damaged" if any(not_finite(file.get_tensor(name), name) for name in file.keys()) else ""  # noqa: SIM118
    except FileNotFoundError:
        return "missing"
    except (SafetensorError, OSError, ValueError, RuntimeError):
        return "damaged"


def load_weights(path: Path, model: Seq2Seq) -> None:
    """Read the model's parameters from a file.

    Raises:
        UserError: the file is missing or damaged, or belongs to another model.
    """
    check(path)
    try:
        with safetensors.safe_open(path, "pt") as file:
            written = (file.metadata() or {}).get(_IDENTITY, "")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        identity = dict(line.split("\t", 1) for line in written.splitlines())
    except FileNotFoundError as error:
        raise UserError(
            f"{path} is missing: the run is incomplete. Restore it from an intact copy, or try its other weights: "
            f"checkpoint={'last' if path.stem == 'best' else 'best'}."
        ) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}). Restore the run from an intact copy, or train anew.") from error
    wanted = dict(model.named_parameters())
    odd = strange(identity, model) + sorted(wanted.keys() ^ tensors.keys())
    odd += [name for name in wanted.keys() & tensors.keys() if wanted[name].shape != tensors[name].shape]
    if odd:
        raise UserError(
            f"{path} does not belong to this run's configuration: {', '.join(odd[:3])} differ. "
            f"Do not mix the files of two runs."
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])
    if name := not_finite(wanted):
        raise damaged(path, f"{name} has NaN or infinity")


def fingerprint(model: Seq2Seq) -> str:
    """A hash of the model's parameters, the same on every device."""
    digest = hashlib.sha256()
    for name, value in sorted(model.named_parameters()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
