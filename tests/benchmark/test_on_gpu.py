"""What is measured on a GPU, tried on a CPU with tiny sizes: every step has figures, and the page shows them."""

import json
import subprocess
import sys
from pathlib import Path

import on_gpu
import pytest
import torch
from gpu.measures import ceilings, parity
from gpu.page import PREDICTIONS, page

from nmt.system.errors import UserError

pytestmark = pytest.mark.long


ROOT = Path(__file__).resolve().parents[2]


def test_the_cpu_has_its_own_numbers() -> None:
    found = parity(torch.device("cpu"))
    assert len(found) == 5
    assert all(own == {"loss": 0, "gradients": 0, "beams": 32, "of": 32} for own in found.values())


def test_the_ceilings_are_above_nothing() -> None:
    found = ceilings(torch.device("cpu"), 64)
    assert all(value > 0 for value in found.values() if isinstance(value, float))
    assert {prediction.path[0] for prediction in PREDICTIONS if prediction.step == "ceilings"} <= found.keys()


def test_every_step_runs_once_and_is_on_the_page(tmp_path: Path) -> None:
    words = [f"folder={tmp_path}", "device=cpu", "quick=true", "steps=ceilings,updates,training-80,multi30k"]
    script = [sys.executable, str(ROOT / "scripts" / "on_gpu.py")]
    done = subprocess.run([*script, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "| products of matrices in bf16 | 780 | " in text
    assert "| 80 | float32 | bahdanau | " in text
    assert "minutes of training." in text
    updates = json.loads((tmp_path / "updates.json").read_text("utf-8"))
    assert updates["weights"] < 1e-4
    assert all(updates["tokens_per_second"]["8"][kind] > 0 for kind in ("eager", "graphs"))
    assert "| 8 | " in text.partition("## CUDA graphs and Triton kernels")[2]
    again = subprocess.run([*script, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert again.stderr.count("figures are there already") == 4


def test_the_package_need_not_be_installed(tmp_path: Path) -> None:
    """As on a machine that got the wheels alone. -S leaves out .pth files, by which it is installed here."""
    libraries = [path for path in sys.path if path.endswith("-packages")]
    code = f"import runpy, sys; sys.path += {libraries}; runpy.run_path({str(ROOT / 'scripts' / 'on_gpu.py')!r})"
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); {code}"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_a_step_that_fails_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise UserError("out of luck")

    monkeypatch.setattr(on_gpu, "work", fail)
    assert on_gpu.main([f"folder={tmp_path}", "device=cpu", "steps=parity"]) == 1
    assert "parity failed: out of luck" in (tmp_path / "page.md").read_text("utf-8")
    monkeypatch.setattr(on_gpu, "work", lambda *_: {"a": {"loss": 0.0, "gradients": 1e-6, "beams": 3, "of": 4}})
    assert on_gpu.main([f"folder={tmp_path}", "device=cpu", "steps=parity"]) == 0
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "| a | 0e+00 | 1e-06 | 3 of 4 |" in text
    assert "failed" not in text


@pytest.mark.parametrize("word", ["steps=nonsense", "nonsense=1", "device=cuda:99"])
def test_a_word_that_does_not_exist_is_refused(word: str, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        on_gpu.main([f"folder={tmp_path}", *([] if word.startswith("device") else ["device=cpu"]), word])
    assert not list(tmp_path.glob("*.json"))


def test_figures_of_a_gpu_are_shown() -> None:
    speeds = {"tokens_per_second": 123_456.0, "peak_gpu_memory_bytes": 2e9}
    searched = {"batches": {"64": {"sentences_per_second": 1500.0}}}
    text = page(
        {
            "training-512": {
                "cuda": {"bf16": {"training": {"bahdanau": speeds}, "peers": {"joeynmt": {"training": {"ratio": 5.5}}}}}
            },
            "translating": {"cuda": {"bf16": {"translating": {"bahdanau": {"beam5": searched}}}}},
            "multi30k": {"bleu": 42.0, "valid_bleu": 41.5, "minutes": 2.9},
        }
    )
    assert "| training, bahdanau, 512 sentences | 800,000 | 123,456 | target tokens/s |" in text
    assert "| 512 | bf16 | bahdanau | 123,456 | 2.0 |" in text
    assert "joeynmt, ours is 5.5 times as fast" in text
    assert "| bf16 | bahdanau | beam5 | 64 | 1,500 |" in text
    assert "BLEU 42.00 on test_2016_flickr" in text


def test_wheels_are_fetched_without_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    called: list[list[str]] = []

    def pip(words: list[str]) -> None:
        called.append(words)
        for name in ("torch-2.0-cp312.whl", "hydra_core-1.3-py3.whl", "scipy-1.0-cp312.whl", "setuptools-99.whl"):
            (tmp_path / name).write_bytes(json.dumps(words).encode())

    assert on_gpu.fetch(tmp_path, "3.12", ["scipy"], pip) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["hydra_core-1.3-py3.whl"]
    assert any(word.startswith("hydra-core") for word in called[1])
    assert not any(word.startswith("torch") for word in called[1])
    assert "1 wheels" in capsys.readouterr().out
