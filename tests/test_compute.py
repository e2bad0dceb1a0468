"""Choosing a device: the current GPU, one precision in a whole model, deterministic algorithms."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import nmt.system.compute
from nmt.system.compute import Compute
from nmt.system.errors import UserError

_CUDNN: Any = torch.backends.cudnn
FLOAT32 = [torch.backends.cuda.matmul, _CUDNN, _CUDNN.rnn, _CUDNN.conv]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A machine with two GPUs, of which the second has bfloat16; what was asked of torch, in order."""
    asked: list[str] = []
    current = [0]

    def set_device(device: torch.device) -> None:
        current[0] = device.index
        asked.append(f"set {device}")

    def has_bf16(including_emulation: bool = True) -> bool:
        asked.append(f"bf16 of {current[0]}")
        return current[0] == 1

    before = [place.fp32_precision for place in FLOAT32]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", has_bf16)
    yield asked
    for place, precision in zip(FLOAT32, before, strict=True):
        place.fp32_precision = precision


def test_the_second_gpu_becomes_the_current_one_before_it_is_asked(two_gpus: list[str]) -> None:
    compute = Compute.choose("cuda:1")
    assert compute.dtype is torch.bfloat16
    assert two_gpus == ["set cuda:1", "bf16 of 1"]


@pytest.mark.parametrize(("precision", "products"), [("float32", "ieee"), ("bf16", "tf32")])
@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_multiplies_float32_in_one_way(precision: str, products: str) -> None:
    Compute.choose("cuda:1", precision)  # type: ignore[arg-type]
    assert {place.fp32_precision for place in FLOAT32} == {products}


def test_the_cpu_keeps_its_float32() -> None:
    before = [place.fp32_precision for place in FLOAT32]
    Compute.choose("cpu", "bf16")
    assert [place.fp32_precision for place in FLOAT32] == before


def test_deterministic_algorithms_are_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is restored afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    settings: Any = torch.utils.deterministic
    monkeypatch.setattr(settings, "fill_uninitialized_memory", settings.fill_uninitialized_memory)
    try:
        Compute.choose("cpu", deterministic=True)
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    finally:
        Compute.choose("cpu")
    assert not torch.are_deterministic_algorithms_enabled()


def test_int8_is_for_search_on_an_x86_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nmt.system.compute, "has_int8", lambda: True)
    compute = Compute.choose("cpu", "int8")
    assert compute.int8
    assert not compute.emulates
    assert not compute.automatic
    assert not Compute.choose("cpu", "bf16").int8
    with pytest.raises(UserError, match="precision=int8 is for search only"):
        compute.check_searches_not()
    monkeypatch.setattr(nmt.system.compute, "has_int8", lambda: False)
    with pytest.raises(UserError, match="precision=int8 needs an x86 processor"):
        Compute.choose("cpu", "int8")
