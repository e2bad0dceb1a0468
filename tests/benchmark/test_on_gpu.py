"""What is measured on a GPU, tried on a CPU with tiny sizes: every step has figures, and the page shows them."""

import json
import subprocess
import sys
from pathlib import Path

import on_gpu
import pytest
from benchmarking.session import beside
from gpu.page import page

from nmt.system.errors import UserError
from tests.small import ROOT

pytestmark = pytest.mark.long

#: How far a variant is from the CPU.
PARITY = {"loss": 0.0, "gradients": 1e-6, "parameter": "v", "beams": 3, "of": 4}


def test_every_step_runs_once_and_is_on_the_page(tmp_path: Path) -> None:
    steps = "steps=ceilings,updates,training-80,transformer,multi30k"
    words = [f"folder={tmp_path}", "device=cpu", "quick=true", steps]
    script = [sys.executable, str(ROOT / "scripts" / "on_gpu.py")]
    done = subprocess.run([*script, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "| products of matrices in bf16 | " in text
    assert "| 80 | float32 | bahdanau | " in text
    assert "minutes of training." in text
    assert "| transformer | " in text.partition("in one loop")[2]
    updates = json.loads((tmp_path / "updates.json").read_text("utf-8"))
    assert updates["weights"] < 1e-4
    assert "| 8 | " in text.partition("## CUDA graphs and Triton kernels")[2]
    again = subprocess.run([*script, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert again.stderr.count(" is there ") == 5


def test_a_step_that_fails_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise UserError("out of luck")

    monkeypatch.setattr(on_gpu, "work", fail)
    assert on_gpu.main([f"folder={tmp_path}", "device=cpu", "steps=parity"]) == 1
    assert "parity failed: out of luck" in (tmp_path / "page.md").read_text("utf-8")
    monkeypatch.setattr(on_gpu, "work", lambda *_: {"a": PARITY})
    assert on_gpu.main([f"folder={tmp_path}", "device=cpu", "steps=parity"]) == 0
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "| a | 0e+00 | 1e-06 | v | 3 of 4 |" in text
    assert "failed" not in text


def test_a_peer_is_on_the_page_with_its_ratio() -> None:
    peer = {"training": beside([300.0, 300.0], [100.0, 150.0], "tokens_per_second")}
    measured = {"training": {"luong": {"tokens_per_second": 300.0}}, "peers": {"joey": peer, "eole": {"training": {}}}}
    text = page({"training-512": {"cuda": {"bf16": measured}}})
    assert "joey, ours is 2.5 times as fast" in text
    assert "eole" not in text


@pytest.mark.parametrize("wrong", [{"gradients": 1.1e-4}, {"gradients": float("nan")}, {"error": "no kernel"}], ids=str)
def test_a_gradient_that_is_too_far_from_the_cpus_fails(wrong: dict[str, object]) -> None:
    assert on_gpu.unequal({"a": PARITY}) == {}
    assert on_gpu.unequal({"a": PARITY, "b": PARITY | wrong})["failed"].partition(": ")[2].startswith("b: ")
