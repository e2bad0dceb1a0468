"""The comparison of two versions of the program: it measures both, and refuses a revision that is not there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "versions.py"


@pytest.fixture(scope="module", autouse=True)
def repository() -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("this is not a clone")


def test_an_unknown_revision_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("versions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    assert versions.main(["no-such-revision", "--quick"]) == 1
    assert "git cannot give revision no-such-revision" in capsys.readouterr().err


@pytest.mark.slow
def test_both_versions_are_measured_in_turn() -> None:
    command = [sys.executable, str(SCRIPT), "HEAD", "--quick", "--rounds", "1", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [row for row in done.stdout.splitlines() if "`" in row]
    assert len(rows) == 16
    assert all(re.search(r"\| \d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\) \|$", row) for row in rows)
