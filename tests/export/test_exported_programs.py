"""Exported programs translate as the run does."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.text.canonical import canonical, shows_nothing
from tests.export.exported import NEEDS, WITH_PACKAGES, translated
from tests.small import ODD_LINES, Capture, call, many_lines, pairs, words, write_lines

#: Each wiring that the graphs of ONNX support, with different scores, readouts and sizes. None: the run of the other
#: tests. The last run has learnt too little: some of its translations are as long as they may be.
WIRINGS = [
    None,
    ("decoder=luong", "attention/score=general", "encoder.layers=2", "decoder.layers=2"),
    ("decoder=luong", "attention/score=scaled_dot", "decoder.input_feeding=false"),
    ("decoder=conditional", "attention/score=concat", "decoder/readout=maxout"),
    ("decoder=bahdanau", "trainer.steps=20"),
]


@pytest.fixture(scope="module", params=WIRINGS, ids=lambda words: " ".join(words or ["decoder=bahdanau"]))
def learnt(request: pytest.FixtureRequest, trained: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each wiring that has learnt the language."""
    if request.param is None:
        return trained
    folder = tmp_path_factory.mktemp("runs")
    name, steps = ("little", []) if "trainer.steps=20" in request.param else ("much", ["trainer.steps=150"])
    line = words(text, folder, f"name={name}", *request.param, *steps, "trainer.validate_every=1000")
    assert call("train", *line) == 0
    return folder / name


def agreed(run: Path, name: str, search: dict[str, float], here: Path) -> tuple[list[str], list[str]]:
    """200 lines of 1, 2, 50 and other numbers of pieces, and what both the run and the program make of them.

    The exported folder is `here / "out dir"`, its settings those of the run but for the `search`.
    """
    lines = [*many_lines(), *ODD_LINES]
    source = write_lines(here / "in", lines)
    manifest = here / "out dir" / "manifest.json"
    if not manifest.exists():
        assert call("export", f"run={run}", f"format={name}", f"output={here / 'out dir'}") == 0
        settings = json.loads(manifest.read_text(encoding="utf-8"))
        assert (settings["beam_size"], settings["length_penalty"]) == (5, 1.0), "the run's search"
        readme = (here / "out dir" / "README.md").read_text(encoding="utf-8")
        assert readme.startswith(f"# {run.name}: a translator, de to en\n")
    settings = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**settings, **search}), encoding="utf-8")
    more = ["search=greedy"] if search["beam_size"] == 1 else [f"search.{key}={value}" for key, value in search.items()]
    assert call("translate", f"run={run}", f"input={source}", f"output={here / 'ours'}", *more) == 0
    ours = (here / "ours").read_text(encoding="utf-8").split("\n")
    assert translated(here / "out dir" / "translate.py", source) == ours
    assert [not text for text in ours[:-1]] == [shows_nothing(line) for line in lines]
    assert [ours[-5], ours[-4], ours[-3]] == ["", "", ours[-2]] != [""] * 3
    return lines, ours[:-1]


@NEEDS["ctranslate2"]
@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 3, "length_penalty": 0}], ids=str)
def test_ctranslate2_translates_as_the_run_does(
    transformer: Path, search: dict[str, float], here: Path, capfd: Capture
) -> None:
    agreed(transformer, "ctranslate2", search, here)
    assert "out dir: weights in float32, log-probabilities as the run's (largest difference: " in capfd.readouterr().err


@NEEDS["onnx"]
@pytest.mark.long
def test_onnx_translates_as_the_run_does(learnt: Path, here: Path) -> None:
    """By the program, and by greedy search in padded batches."""
    from nmt.export.onnx_program import OnnxTranslator

    agreed(learnt, "onnx", {"beam_size": 5, "length_penalty": 1.0}, here)
    lines, ours = agreed(learnt, "onnx", {"beam_size": 1}, here)
    folder = OnnxTranslator(here / "out dir", threads=1)
    assert {0, 1, 2, 50} <= {len(pieces) for pieces in folder.source.encode(lines)}
    assert in_batches(folder, [*map(canonical, lines)]) == ours, "greedy search, the lines side by side with padding"
    if learnt.name == "little":
        most = folder.longest(5) - 1
        assert any(len(line.split()) == 5 and len(text.split()) == most for line, text in zip(lines, ours))


def in_batches(folder: Any, lines: list[str], size: int = 64) -> list[str]:
    """Greedy search by the graphs for lines of different lengths at a time, as another program would write it."""
    settings, texts = folder.settings, list[str]()
    for first in range(0, len(lines), size):
        sources = folder.source.encode(lines[first : first + size])
        lengths = np.array([len(source) + 1 for source in sources])
        padded = np.zeros((len(sources), lengths.max()), dtype=np.int64)
        for row, source in enumerate(sources):
            padded[row, : len(source) + 1] = [*source, settings["eos"]]
        state = dict(zip(folder.names, folder.encoder.run(None, {"source": padded, "lengths": lengths}), strict=True))
        token, written = np.full(len(sources), settings["bos"]), [list[int]() for _ in sources]
        most = [folder.longest(len(source)) - 1 for source in sources]
        open_rows = {row for row, line in enumerate(lines[first : first + size]) if not shows_nothing(line)}
        while open_rows:
            log_probs, _, *new = folder.step.run(None, {"token": token, **state})
            log_probs[:, settings["forbidden"]] = -math.inf
            token = log_probs.argmax(1)
            state |= dict(zip(folder.state, new, strict=True))
            for row in [*open_rows]:
                if token[row] == settings["eos"] or len(written[row]) == most[row]:
                    open_rows.remove(row)
                else:
                    written[row].append(int(token[row]))
        texts += [folder.target.decode(tokens) for tokens in written]
    return texts


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_PACKAGES)
def test_weights_are_quantised(name: str, trained: Path, transformer: Path, here: Path, capfd: Capture) -> None:
    run, file = {"ctranslate2": (transformer, "model.bin"), "onnx": (trained, "step.onnx")}[name]
    source = write_lines(here / "in", [row[0] for row in pairs(60)])
    translations, sizes = [], []
    for kind in ("float32", "int8"):
        (here / kind).mkdir()  # an empty folder is as good as none
        assert call("export", f"run={run}", f"format={name}", f"output={here / kind}", f"quantization={kind}") == 0
        translations.append(translated(here / kind / "translate.py", source))
        sizes.append((here / kind / file).stat().st_size)
    assert sizes[1] < 0.7 * sizes[0]
    assert 50 <= sum(one == two for one, two in zip(*translations, strict=True)) <= 61
    assert "weights in int8.\n" in capfd.readouterr().err
