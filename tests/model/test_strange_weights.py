"""Files of weights that no program of ours has written: one message each, and no memory for what they claim."""

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.model.weights import load_weights, lost
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
