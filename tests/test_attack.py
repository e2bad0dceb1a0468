"""The attacks of `scripts/attack.py`: short forms, and that each sees a failure if there is one."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from attacking import flips, strangers
from attacking.victim import Result, Said, table

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


def test_flips_that_nobody_notices_fail(tmp_path: Path) -> None:
    right, result = (Said(0, "", ""), b"right"), Result("file")
    for ended, outcome in (
        ((Said(0, "", ""), b"right"), "harmless"),
        ((Said(1, "", "nmt.translate: file is damaged"), b""), "refused"),
        ((Said(0, flips.CHECKED, ""), b"other"), "said by nmt.check"),
        ((Said(0, "", ""), b"wrong"), ""),
        ((Said(1, "", "Traceback"), b""), ""),
        ((Said(-1, "", "", "ValueError"), b""), ""),
    ):
        before = len(result.failures)
        flips.judge(result, 7, ended, right, tmp_path)
        assert len(result.failures) == before + (not outcome)
        assert not outcome or result.outcomes[outcome] == 1
    assert table([result]).endswith("| file | 6 | 1 harmless, 1 refused, 1 said by nmt.check | 3 |")


def test_a_watch_sees_what_is_outside(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, socket, sys
sys.path.insert(0, {str(ROOT / "scripts")!r})
from attacking.strangers import Watch
outside, allowed = pathlib.Path({str(tmp_path / "outside")!r}), pathlib.Path({str(tmp_path / "allowed")!r})
outside.mkdir(); allowed.mkdir()
(outside / "secret").write_text("x")
watch = Watch(outside, allowed)
watch.active = True
(allowed / "mine").write_text("x")
assert not watch.seen
(outside / "secret").read_text()
(outside.parent / "elsewhere").write_text("x")
(allowed / "link").symlink_to(outside)
(allowed / "link" / "secret").read_text()
os.system("true")
try:
    socket.create_connection(("127.0.0.1", 9), 0.1)
except OSError:
    pass
watch.active = False
print([each.split()[0] for each in watch.seen])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    heard = ["open", "open", "os.symlink", "open", "os.system", "socket.getaddrinfo", "socket.connect"]
    assert ended.stdout.strip() == str(heard)
    assert strangers.LINKED
