"""Runs as ONNX graphs: onnxruntime computes and translates the same, and what they cannot hold is refused."""

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.pipeline.onnx_model import check_exportable, largest_onnx_difference, save_onnx
from nmt.text.canonical import canonical, shows_nothing
from nmt.text.tokenizer import EOS, Tokenizer
from tests.pipeline.drawn import drawn_model, joint_tokenizer
from tests.pipeline.small import ODD_LINES, call, many_lines, pairs, write_lines
from tests.pipeline.small import words as small_words

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]

needs_onnx = pytest.mark.skipif(
    find_spec("onnx") is None or find_spec("onnxruntime") is None,
    reason="needs onnx and onnxruntime: pip install 'nmt[onnx]'",
)
SMALL = (
    "model.embedding_size=12",
    "model.tie_embeddings=none",
    "encoder.size=8",
    "decoder.size=16",
    "attention.size=10",
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with one vocabulary for both languages."""
    return joint_tokenizer()


def drawn(tokenizer: Tokenizer, *words: str) -> tuple[Seq2Seq, dict[str, str]]:
    """A small model with drawn weights, and its choices."""
    return drawn_model(tokenizer, SMALL, words)


# What the graphs compute


@needs_onnx
@pytest.mark.parametrize(
    "words",
    [
        ("decoder=bahdanau", "attention/score=additive"),
        ("decoder=bahdanau", "attention/score=concat", "decoder.previous_state=true", "decoder/readout=maxout"),
        ("decoder=bahdanau", "attention/score=general", "decoder/readout=state", "decoder.size=12", "decoder.layers=2"),
        ("decoder=luong", "attention/score=general", "encoder.layers=2", "decoder.layers=3"),
        ("decoder=luong", "attention/score=dot", "attention.size=null", "decoder.first_state=mean"),
        ("decoder=luong", "attention=multihead", "attention.heads=1", "decoder.input_feeding=false"),
        ("decoder=luong", "decoder.size=20", "encoder.bidirectional=false", "decoder/readout=tanh"),
        ("decoder=conditional", "attention/score=additive", "decoder.layers=2", "decoder/readout=context"),
        ("decoder=conditional", "decoder.first_state=zero", "attention/score=additive", "attention.project=true"),
        ("decoder=conditional", "decoder.first_state=backward", "encoder.layers=2", "decoder.readout.size=6"),
    ],
    ids=" ".join,
)
def test_the_graphs_give_the_models_probabilities(tokenizer: Tokenizer, words: tuple[str, ...], here: Path) -> None:
    model, choices = drawn(tokenizer, *words)
    check_exportable(model, choices, here)
    save_onnx(here, model, "float32")
    assert largest_onnx_difference(here, model, tokenizer) < 1e-4
    with torch.no_grad():
        model.output.bias[EOS] += 0.1
    assert largest_onnx_difference(here, model, tokenizer) > 1e-3, "the difference is seen"


@needs_onnx
def test_the_encoders_operator_is_that_of_torch_and_padding_gets_no_weight(tokenizer: Tokenizer, here: Path) -> None:
    import onnx
    import onnxruntime

    model, _ = drawn(tokenizer, "decoder=luong", "attention/score=general")
    save_onnx(here, model, "float32")
    (gru,) = (node for node in onnx.load(here / "encoder.onnx").graph.node if node.op_type == "GRU")
    assert {each.name: each.i for each in gru.attribute}["linear_before_reset"] == 1
    assert gru.input[4], "lengths"
    encoder, step = (onnxruntime.InferenceSession(here / f"{name}.onnx") for name in ("encoder", "step"))
    source = np.array([[5, 6, 7, 8, EOS], [9, EOS, 0, 0, 0]])
    given = encoder.run(None, {"source": source, "lengths": np.array([5, 2])})
    named = dict(zip([each.name for each in encoder.get_outputs()], given, strict=True))
    assert not named["values"][1, 2:].any()
    weights = step.run(["weights"], {"token": np.array([2, 2]), **named})[0]
    assert np.allclose(weights.sum(1), 1, atol=1e-6)
    assert not weights[1, 2:].any()


# The folder


def translated(program: Path, source: Path) -> list[str]:
    """What the exported program makes of a file, from another folder and without nmt."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with source.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-P", program], stdin=stream, capture_output=True, env=environment, cwd="/"
        )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode("utf-8").split("\n")


#: Each wiring that the graphs know, with scores, a readout and sizes of its own. None: the run of the other tests. The
#: last run has learnt too little: some of its translations are as long as they may be.
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
    line = small_words(text, folder, f"name={name}", *request.param, *steps, "trainer.validate_every=1000")
    assert call("train", *line) == 0
    return folder / name


@needs_onnx
def test_it_translates_200_lines_as_the_run_does(learnt: Path, here: Path, capfd: Capture) -> None:
    """Lines of 1, 2 and 50 pieces among them: by the program, and by greedy search in padded batches."""
    lines = [*many_lines(), *ODD_LINES]
    source = write_lines(here / "in", lines)
    assert call("export", f"run={learnt}", "format=onnx", f"output={here / 'out dir'}") == 0
    assert "out dir: weights in float32, log-probabilities as the run's (largest difference: " in capfd.readouterr().err
    program, manifest = here / "out dir" / "translate.py", here / "out dir" / "manifest.json"
    settings = json.loads(manifest.read_text(encoding="utf-8"))
    assert (settings["beam_size"], settings["length_penalty"]) == (5, 1.0), "the run's search"
    for search, size in (((), 5), (("search=greedy",), 1)):
        assert call("translate", f"run={learnt}", f"input={source}", f"output={here / 'ours'}", *search) == 0
        manifest.write_text(json.dumps({**settings, "beam_size": size}), encoding="utf-8")
        ours = (here / "ours").read_text(encoding="utf-8").split("\n")
        assert translated(program, source) == ours
        assert len(ours) == 205
        assert [ours[-5], ours[-4], ours[-3]] == ["", "", ours[-2]] != [""] * 3
    lengths = [len(pieces) for pieces in exported(here / "out dir").source.encode(lines)]
    assert {0, 1, 2, 50} <= {*lengths}
    assert in_batches(here / "out dir", [*map(canonical, lines)]) == ours[:-1], (
        "greedy search, the lines side by side with padding"
    )
    if learnt.name == "little":
        most = math.ceil(settings["length_ratio"] * 5) + settings["extra_length"] - 1
        assert any(len(line.split()) == 5 and len(text.split()) == most for line, text in zip(lines, ours))
    assert (
        (here / "out dir" / "README.md")
        .read_text(encoding="utf-8")
        .startswith(f"# {learnt.name}: a translator, de to en\n")
    )


def exported(folder: Path) -> Any:
    """The graphs and the tokenizer of a folder."""
    from nmt.pipeline.onnx_program import OnnxTranslator

    return OnnxTranslator(folder, threads=1)


def in_batches(folder: Path, lines: list[str], size: int = 64) -> list[str]:
    """Greedy search by the graphs for lines of different lengths at a time, as another program would write it."""
    opened = exported(folder)
    settings, texts = opened.settings, list[str]()
    for first in range(0, len(lines), size):
        sources = opened.source.encode(lines[first : first + size])
        lengths = np.array([len(source) + 1 for source in sources])
        padded = np.zeros((len(sources), lengths.max()), dtype=np.int64)
        for row, source in enumerate(sources):
            padded[row, : len(source) + 1] = [*source, settings["eos"]]
        state = dict(zip(opened.names, opened.encoder.run(None, {"source": padded, "lengths": lengths}), strict=True))
        token, written = np.full(len(sources), settings["bos"]), [list[int]() for _ in sources]
        most = [math.ceil(settings["length_ratio"] * len(source)) + settings["extra_length"] - 1 for source in sources]
        open_rows = {row for row, line in enumerate(lines[first : first + size]) if not shows_nothing(line)}
        while open_rows:
            log_probs, _, *new = opened.step.run(None, {"token": token, **state})
            log_probs[:, settings["forbidden"]] = -math.inf
            token = log_probs.argmax(1)
            state |= dict(zip(opened.state, new, strict=True))
            for row in [*open_rows]:
                if token[row] == settings["eos"] or len(written[row]) == most[row]:
                    open_rows.remove(row)
                else:
                    written[row].append(int(token[row]))
        texts += [opened.target.decode(tokens) for tokens in written]
    return texts


@needs_onnx
def test_matrices_are_rounded_to_int8(trained: Path, here: Path, capfd: Capture) -> None:
    source = write_lines(here / "in", [row[0] for row in pairs(60)])
    translations, sizes = [], []
    for kind in ("float32", "int8"):
        assert call("export", f"run={trained}", "format=onnx", f"output={here / kind}", f"quantization={kind}") == 0
        translations.append(translated(here / kind / "translate.py", source))
        sizes.append((here / kind / "step.onnx").stat().st_size)
    assert sizes[1] < 0.7 * sizes[0]
    assert 50 <= sum(one == two for one, two in zip(*translations, strict=True)) <= 61
    assert "weights in int8.\n" in capfd.readouterr().err


# What is refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["encoder=lstm"], "=lstm. Train a run with encoder=gru"),
        (["encoder=transformer"], "encoder=transformer. Train a run with encoder=gru."),
        (["decoder=none"], "decoder=none. Train a run with decoder=bahdanau, luong or conditional."),
        (["decoder.multi_step=true", "decoder.layers=2"], "Train a run with decoder.multi_step=false."),
        (["attention/normaliser=entmax"], "attention/normaliser=entmax with its settings. Train a run with"),
        (["attention.normaliser.temperature=2"], "Train a run with attention/normaliser=softmax"),
        (["attention.coverage=true", "attention/score=additive"], "Train a run with attention.coverage=false."),
        (["attention.heads=2"], "attention.heads=2. Train a run with attention.heads=1."),
        (["attention/score=cosine", "attention.project=true"], "attention/score=cosine. Train a run with"),
        (["attention/window=local_m"], "attention/window=local_m. Train a run with attention/window=global."),
        (["attention/read=hard"], "attention/read=hard. Train a run with attention/read=soft."),
        (["context.sentences=1"], "(context.sentences). Train a run with context.sentences=0."),
    ],
)
def test_what_the_graphs_have_no_place_for_is_refused(
    tokenizer: Tokenizer, words: list[str], message: str, here: Path
) -> None:
    model, choices = drawn(tokenizer, *words)
    with pytest.raises(UserError, match=r"^checkpoints/x cannot be exported: format=onnx does not support ") as caught:
        check_exportable(model, choices, Path("checkpoints/x"))
    assert message in str(caught.value)


def test_nothing_is_written_where_it_is_refused(
    trained: Path, unattentive: Path, transformer: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ("format=onnx", "output=out")
    assert call("export", f"run={trained}", *more, "quantization=int16") == 1
    assert "quantization=int16: must be float32 or int8 with format=onnx." in capfd.readouterr().err
    assert call("export", f"run={unattentive}", *more) == 1
    assert "does not support decoder=none. Train a run with" in capfd.readouterr().err  # CTranslate2 cannot, either
    assert call("export", f"run={transformer}", *more) == 1
    assert "does not support encoder=transformer. Give format=ctranslate2" in capfd.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert call("export", f"run={trained}", *more) == 1
    assert (
        "format=onnx needs the packages onnx and onnxruntime. Install them: pip install 'nmt[onnx]'"
        in capfd.readouterr().err
    )
    assert list(here.iterdir()) == []


@needs_onnx
def test_a_wrong_or_broken_export_never_appears(
    trained: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.pipeline.exporting.largest_onnx_difference", lambda *_: float("nan"))
    assert call("export", f"run={trained}", "format=onnx", "output=out") == 1
    assert "differ by up to nan from those of the run" in capfd.readouterr().err
    assert list(here.iterdir()) == []
