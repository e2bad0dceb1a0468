"""Files of weights that no program of ours has written: one message each, and no memory for what they claim."""

import json
import re
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from nmt.model.weights import load_weights, lost, save_weights
from nmt.system.errors import UserError
from tests.catalogue import model


def file_of(header: bytes | dict[str, Any], length: int | None = None) -> bytes:
    """A safetensors file with this header, which says that it has `length` bytes, and eight bytes of data."""
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(data) if length is None else length) + data + bytes(8)


def tensor(shape: list[int], kind: str = "F32", end: int = 8) -> dict[str, Any]:
    return {"a": {"dtype": kind, "shape": shape, "data_offsets": [0, end]}}


@pytest.mark.parametrize(
    "data",
    [
        file_of(b"{}", 2**63),
        file_of(b"{}", 10**11),
        file_of(tensor([10**12], end=4 * 10**12)),
        file_of(tensor([10**12])),
        file_of(tensor([2**40, 2**40], end=0)),
        file_of(tensor([0, 10**18], end=0)),
        file_of(tensor([-1])),
        file_of(tensor([2], "F99")),
        file_of(b"[" * 50_000 + b"]" * 50_000),
        file_of(b'{"a":' * 5_000 + b"1" + b"}" * 5_000),
        b"",
    ],
    ids=range(11),
)
def test_a_strange_file_is_refused_with_little_memory(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    path.write_bytes(data)
    made = model()
    tracemalloc.start()
    with pytest.raises(UserError, match=r"best\.safetensors (is damaged|does not belong)"):
        load_weights(path, made)
    assert lost(path) in ("", "damaged")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2])
def test_weights_that_are_not_finite_are_refused(value: float, kind: torch.dtype, tmp_path: Path) -> None:
    """Their file and the tensor are named; finite ones of the type are read, however large."""
    path, made = tmp_path / "best.safetensors", model()
    tensors = {name: torch.full_like(weight, 3e4, dtype=kind) for name, weight in made.named_parameters()}
    safetensors.torch.save_file(tensors, path)
    load_weights(path, made)
    assert lost(path) == ("damaged" if kind == torch.float8_e5m2 else "")  # in which nobody trains
    *_, name = tensors
    tensors[name].view(-1)[-1:] = torch.tensor([value]).to(kind)
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(UserError, match=rf"best\.safetensors is damaged: {re.escape(name)} has NaN or infinity"):
        load_weights(path, made)
    assert lost(path) == "damaged"


def test_a_number_that_is_too_large_for_the_model_is_refused(tmp_path: Path) -> None:
    path, made = tmp_path / "best.safetensors", model().float()
    safetensors.torch.save_file(
        {name: weight.detach().double() + 1e300 for name, weight in made.named_parameters()}, path
    )
    with pytest.raises(UserError, match="has NaN or infinity"):
        load_weights(path, made)


def test_weights_of_another_tokenizer_are_refused(tmp_path: Path) -> None:
    path, made = tmp_path / "best.safetensors", model()
    made.identity = {"tokenizer": "abc", "encoder": "gru"}
    save_weights(path, made)
    load_weights(path, made)
    made.identity["tokenizer"] = "def"
    with pytest.raises(UserError, match=r"does not belong to this run's configuration: tokenizer differ"):
        load_weights(path, made)
