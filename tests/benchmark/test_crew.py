"""The processes of a benchmark end with the one that leads them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEADER = """
import multiprocessing, os, signal, sys, time
sys.path[:0] = ["scripts", "."]
from benchmarking.crew import end_with_leader

def work(own, ready):
    if own:
        end_with_leader()
    print(os.getpid(), flush=True)
    ready.set()
    time.sleep(60)

if __name__ == "__main__":
    start, end, own = sys.argv[1:]
    context = multiprocessing.get_context(start)
    ready = context.Event()
    context.Process(target=work, args=(own == "True", ready), daemon=True).start()
    ready.wait(50)
    os.kill(os.getpid(), getattr(signal, end))
"""


@pytest.mark.skipif(os.name != "posix", reason="the leader ends by a signal")
@pytest.mark.parametrize(("own", "end"), [(True, "SIGTERM"), (True, "SIGKILL"), (False, "SIGKILL")])
def test_a_case_ends_with_a_leader_that_cannot_tell_it(own: bool, end: str, tmp_path: Path) -> None:
    program = tmp_path / "leader.py"
    program.write_text(LEADER, "utf-8")
    words = [sys.executable, str(program), "spawn", end, str(own)]
    with (tmp_path / "out").open("w") as out:
        assert (
            subprocess.run(words, cwd=ROOT, stdout=out, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode
            < 0
        )
    case = int((tmp_path / "out").read_text())
    try:
        assert _ends(case, within=5 if own else 1) == own  # nothing else ends it
    finally:
        if not own:
            os.kill(case, 9)


def _ends(process: int, within: float) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
