"""The benchmark's comparison of a model with its export: a whole run of tiny sizes, and what it refuses."""

import json
from pathlib import Path

import benchmark
import pytest
from benchmarking.exported import PROGRAMS

from tests.pipeline.small import BOTH, call, words, write_text

pytestmark = pytest.mark.long


Capture = pytest.CaptureFixture[str]


TRANSFORMER = (*BOTH, "attention.size=null", "attention/score=scaled_dot")


@pytest.mark.parametrize(
    ("kind", "overrides", "package", "title"),
    [("ctranslate2", TRANSFORMER, "ctranslate2", "CTranslate2"), ("onnx", (), "onnxruntime", "ONNX Runtime")],
)
def test_a_run_is_compared_with_its_export(
    kind: str, overrides: tuple[str, ...], package: str, title: str, tmp_path: Path, capfd: Capture
) -> None:
    pytest.importorskip("nmt.export")
    pytest.importorskip(package, reason=f"needs {package}: pip install 'nmt[export]'")
    text = write_text(tmp_path / "text")
    sizes = ("encoder.size=32", "optimizer.lr=0.005", "trainer.steps=60")
    assert call("train", *words(text, tmp_path, "name=tiny", *overrides, *sizes)) == 0
    file = tmp_path / "all.json"
    line = ["--quick", "--only", "exported", "--rounds", "3", "--threads", "1", "--json", str(file)]
    assert benchmark.main([*line, "--run", str(tmp_path / "tiny")]) == 0
    measured = json.loads(file.read_text(encoding="utf-8"))["exported"]
    assert list(measured) == list(PROGRAMS[kind])
    for figures in measured.values():
        low, high = figures["spread"]["of_nmt"]
        assert 0 < low <= figures["of_nmt"] <= high
        assert figures["rounds"] == 3
        assert 0 <= figures["same"] <= figures["sentences"] == 4
    assert measured["nmt"]["of_nmt"] == 1
    assert measured["nmt"]["same"] == 4
    out = capfd.readouterr().out
    assert "## A model beside its export" in out
    assert f"| {title}, int8" in out


def test_without_a_run_there_is_nothing_to_export(tmp_path: Path, capfd: Capture) -> None:
    assert benchmark.main(["--only", "exported"]) == 1
    assert "--only exported needs --run DIR, a trained run" in capfd.readouterr().err
    assert benchmark.main(["--only", "exported", "--run", str(tmp_path / "nowhere")]) == 1
    assert "benchmark.py: --run " in capfd.readouterr().err
