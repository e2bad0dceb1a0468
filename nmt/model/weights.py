"""Weights as safetensors: reading them cannot run code."""

import hashlib
import os
import re
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError

from nmt.checksums import check, damage, replacing
from nmt.compat_weights import upgrade_weights
from nmt.errors import UserError
from nmt.model.seq2seq import Seq2Seq


def save_weights(path: Path, model: Seq2Seq) -> None:
    """Write the model's parameters, tied ones once, and the checksum of the file."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.named_parameters()}
    with replacing(path.parent, path.name) as temporary:
        try:
            safetensors.torch.save_file(tensors, temporary)
        except SafetensorError as error:
            raise _os_error(error) from error


def _os_error(error: SafetensorError) -> OSError:
    """The operating system's error, whose number safetensors gives only in the text of its message."""
    if number := re.search(r"\(os error (\d+)\)", str(error)):
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(None, str(error))


def lost(path: Path) -> str:
    """Whether weights cannot be used: "missing", "damaged" or ""."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            file.keys()
        return "damaged" if damage(path) else ""
    except FileNotFoundError:
        return "missing"
    except (SafetensorError, OSError, ValueError):
        return "damaged"


def load_weights(path: Path, model: Seq2Seq) -> None:
    """Read the model's parameters.

    Raises:
        UserError: the file is missing, damaged, or of another model.
    """
    check(path)
    try:
        tensors = upgrade_weights(safetensors.torch.load_file(path))
    except FileNotFoundError as error:
        raise UserError(
            f"{path} is missing: the run is incomplete. Restore it from an intact copy, or try its other weights: "
            f"checkpoint={'last' if path.stem == 'best' else 'best'}."
        ) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}). Restore the run from an intact copy, or train anew.") from error
    wanted = dict(model.named_parameters())
    odd = sorted(wanted.keys() ^ tensors.keys())
    odd += [name for name in wanted.keys() & tensors.keys() if wanted[name].shape != tensors[name].shape]
    if odd:
        raise UserError(
            f"{path} does not belong to this run's configuration: {', '.join(odd[:3])} differ. "
            f"Do not mix the files of two runs."
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])


def fingerprint(model: Seq2Seq) -> str:
    """A hash of the model's parameters, the same on every device."""
    digest = hashlib.sha256()
    for name, value in sorted(model.named_parameters()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
