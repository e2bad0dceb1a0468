"""Memory goes back to the system where glibc holds it; elsewhere nothing happens."""

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own, since the allocator's settings are the process's. Every other one of many blocks is freed, so
# that what is free lies between what is not, as in a long training.
HOLES = """
from pathlib import Path
from nmt.memory import give_memory_back, keep_memory

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
