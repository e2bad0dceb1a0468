"""Short forms of the attacks of `scripts/attack.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (["fuzz", "count=30"], ["lines to translate | 30", "files of pairs | 30"]),
        (["requests", "count=4"], ["clients that leave | 4", "origins | 18", "half requests | 700 | 700 sent | 0 |"]),
        (["strangers", "count=8"], ["runs from strangers | 8 | 8 refused | 0 |"]),
        pytest.param(["strangers"], ["runs from strangers | 60"], marks=pytest.mark.slow),
        pytest.param(["flips", "count=2"], ["best.safetensors | 2 | 2 refused | 0 |"], marks=pytest.mark.slow),
        pytest.param(["kills", "count=3"], ["SIGKILLs in a training | 3 | 3 resumed | 0 |"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_nmt_withstands(words: list[str], rows: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "attack.py"), *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert all(row in ended.stdout for row in rows), ended.stdout
