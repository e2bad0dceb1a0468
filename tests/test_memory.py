"""Memory goes back to the system where glibc holds it; cores are shared with other programs."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.system import memory
from nmt.translate.__main__ import run

pytestmark = pytest.mark.long


# In a process of its own, since the allocator's settings are the process's. Every other one of many blocks is freed, so
# that what is free lies between what is not, as in a long training.
HOLES = """
from pathlib import Path
from nmt.system.memory import give_memory_back, keep_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

assert keep_memory()
blocks = [bytes([1]) * 100_000 for _ in range(2_000)]
full = resident()
del blocks[::2]
kept = resident()
assert give_memory_back()
print(full, kept, resident())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_free_memory_between_used_is_kept_until_it_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=False)
    if "keep_memory()" in done.stderr:
        pytest.skip("not glibc")
    assert done.returncode == 0, done.stderr
    full, kept, after = map(int, done.stdout.split())
    assert kept > 0.95 * full
    assert after < 0.7 * full


@pytest.mark.parametrize(
    ("environment", "load", "spins"),
    [
        ({}, 0.9, "10000"),
        ({}, 1.0, "1000"),
        ({}, None, "1000"),
        ({"GOMP_SPINCOUNT": "7"}, 0.0, "7"),
        ({"OMP_WAIT_POLICY": "active"}, 0.0, None),
    ],
)
def test_threads_that_wait_give_their_core_away(
    environment: dict[str, str], load: float | None, spins: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def average() -> tuple[float, float, float]:
        if load is None:
            raise OSError
        return load, 0.0, 0.0

    monkeypatch.setattr(os, "getloadavg", average)
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that it is restored afterwards
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["--version"]) == 0
    assert os.environ.get("GOMP_SPINCOUNT") == spins


@pytest.mark.parametrize(
    ("has_amx", "given", "kept"),
    [(False, None, ("64", "64")), (True, None, ("1024", "64")), (False, "1000", ("1000", "1000"))],
)
def test_few_compiled_kernels_are_kept_unless_compiling_takes_long(
    has_amx: bool, given: str | None, kept: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "has_amx", lambda: has_amx)
    names = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    for name in names:
        monkeypatch.setenv(name, given or "")  # so that it is restored afterwards
        if not given:
            monkeypatch.delenv(name)
    assert run(["--version"]) == 0
    assert tuple(os.environ[name] for name in names) == kept


# Where the processor multiplies bfloat16, each shape has a kernel of its own, of half a megabyte.
SHAPES = """
from nmt.system import memory, platform
memory.has_amx = lambda: False
memory.bound_kernels()
import torch
torch.set_num_threads(1)
left, right = torch.ones(800, 256, dtype=torch.bfloat16), torch.ones(256, 256, dtype=torch.bfloat16)
torch.mm(left, right)
before = platform.peak_memory()
for rows in range(1, 800):
    torch.mm(left[:rows], right)
print((platform.peak_memory() - before) >> 20)
"""


def test_memory_does_not_grow_with_the_number_of_shapes() -> None:
    environment = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name}
    done = subprocess.run([sys.executable, "-c", SHAPES], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150  # MiB; some 400 with the defaults of oneDNN and torch


def test_cores_are_shared_before_torch_is_loaded() -> None:
    code = "import sys, nmt.train.__main__, nmt.system.memory; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_cycles_are_looked_for_less_often_inside_only() -> None:
    before = gc.get_threshold()
    with memory.few_collections():
        assert gc.get_threshold()[0] > 10 * before[0]
    assert gc.get_threshold() == before
