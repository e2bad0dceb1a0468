"""Exported models: they compute the run's probabilities, and what a format does not support is refused."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from nmt.build.parts import build_model
from nmt.config.composition import compose
from nmt.export.conversion import FORMATS, largest_difference
from nmt.export.ctranslate2_model import CTRANSLATE2
from nmt.export.onnx_model import ONNX
from nmt.system.errors import UserError, install_command
from nmt.text.tokenizer import EOS, Tokenizer
from tests.export.exported import NEEDS, SMALL, WITH_PACKAGES, drawn, joint_tokenizer
from tests.small import Capture, call, snapshot

SUPPORTED = {
    "ctranslate2": [
        (),
        ("encoder.norm=post", "decoder.norm=post", "encoder.feed_forward_size=7"),
        ("encoder.norm=post", "encoder.self_attention.heads=3"),
        ("encoder/positions=learned", "encoder.positions.count=9", "decoder/positions=learned"),
        ("encoder/positions=none", "decoder/positions=relative", "decoder.self_attention.heads=1", "attention.heads=1"),
        ("encoder/positions=relative", "encoder.self_attention.heads=1", "encoder.positions.distance=3"),
        ("encoder/positions=relative", "encoder.self_attention.heads=1", "encoder.positions.values=true"),
        ("model.tie_embeddings=none", "encoder.size=20", "decoder.size=16"),
        ("model.tie_embeddings=none", "encoder.size=8", "encoder/positions=relative", "encoder.self_attention.heads=1"),
        ("model.tie_embeddings=target", "attention.bias=false", "encoder.self_attention.bias=false"),
    ],
    "onnx": [
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
}

#: For each format overrides, what is refused, and the setting to train with.
REFUSED = {
    "ctranslate2": [
        (["encoder=gru"], "encoder=gru", "encoder=transformer"),
        (["decoder=luong"], "decoder=luong", "decoder=transformer"),
        (["encoder/score=additive"], "encoder/score=additive", "encoder/score=scaled_dot"),
        (["attention/score=general"], "attention/score=general", "attention/score=scaled_dot"),
        (["attention/score=dot"], "attention/score=dot", "attention/score=scaled_dot"),
        (["decoder/window=local_m"], "decoder/window=local_m", "decoder/window=global"),
        (["attention/window=local_p"], "attention/window=local_p", "attention/window=global"),
        (["attention/read=hard"], "attention/read=hard", "attention/read=soft"),
        (["attention/normaliser=sparsemax"], "attention/normaliser=sparsemax", "attention/normaliser=softmax"),
        (["decoder/normaliser=entmax"], "decoder/normaliser=entmax", "decoder/normaliser=softmax"),
        (["attention.project=false", "attention.heads=1"], "attention.project=false", "attention.project=true"),
        (["encoder.branches=true"], "encoder.branches=true", "encoder.branches=false"),
        (["decoder.branches=true"], "decoder.branches=true", "decoder.branches=false"),
        (["attention.size=24"], "attention.size=24 with decoder.size=12", "attention.size=null"),
        (
            ["encoder.self_attention.size=24"],
            "encoder.self_attention.size=24 with encoder.size=12",
            "encoder.self_attention.size=null",
        ),
        (["attention.heads=2"], "decoder.self_attention.heads=4 with attention.heads=2", "attention.heads=4"),
        (
            ["encoder/positions=relative"],
            "encoder/positions=relative with encoder.self_attention.heads=4",
            "encoder.self_attention.heads=1",
        ),
        (["decoder/positions=transformer_xl"], "decoder/positions=transformer_xl", "decoder/positions=sinusoidal"),
        (["context.sentences=1"], "previous sentences (context.sentences)", "context.sentences=0"),
    ],
    "onnx": [
        (["encoder=lstm"], "encoder.cell=lstm", "encoder=gru encoder.cell=gru"),
        (["encoder=transformer"], "encoder=transformer", "encoder=gru"),
        (["decoder=none"], "decoder=none", "decoder=bahdanau, luong or conditional"),
        (["decoder.multi_step=true", "decoder.layers=2"], "decoder.multi_step=true", "decoder.multi_step=false"),
        (
            ["attention.coverage=true", "attention/score=additive"],
            "attention.coverage=true",
            "attention.coverage=false",
        ),
        (["attention.heads=2"], "attention.heads=2", "attention.heads=1"),
        (
            ["attention/score=cosine", "attention.project=true"],
            "attention/score=cosine",
            "attention/score=additive, concat, dot, general or scaled_dot",
        ),
        (["attention/window=local_m"], "attention/window=local_m", "attention/window=global"),
        (["attention/read=hard"], "attention/read=hard", "attention/read=soft"),
        (["attention/normaliser=entmax"], "attention/normaliser=entmax", "attention/normaliser=softmax"),
        (
            ["attention.normaliser.temperature=2"],
            "attention/normaliser=softmax",
            "attention/normaliser=softmax attention.normaliser.temperature=1",
        ),
        (["context.sentences=1"], "previous sentences (context.sentences)", "context.sentences=0"),
    ],
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with one vocabulary for both languages."""
    return joint_tokenizer()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(name, words, marks=NEEDS[name], id=" ".join(words))
        for name, cases in SUPPORTED.items()
        for words in cases
    ],
)
def test_the_export_gives_the_models_probabilities(
    name: str, words: tuple[str, ...], tokenizer: Tokenizer, here: Path
) -> None:
    format_, (model, choices) = FORMATS[name], drawn(tokenizer, name, *words)
    assert [*format_.refusals(model, choices)] == []
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    format_.save(here, model, tokenizer, "float32")
    assert all(parameter.equal(before[name]) for name, parameter in model.named_parameters())
    assert largest_difference(format_, here, model, tokenizer) < 1e-4
    with torch.no_grad():
        model.output.bias[EOS] += 0.1
    assert largest_difference(format_, here, model, tokenizer) > 1e-3, "the difference is seen"


@pytest.mark.parametrize(
    ("name", "words", "setting", "cure"),
    [(name, *case) for name, cases in REFUSED.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_a_format_does_not_support_is_refused(
    name: str, words: list[str], setting: str, cure: str, tokenizer: Tokenizer
) -> None:
    changed = {word.split("=")[0] for word in words}
    common = [word for word in SMALL[name] if word.split("=")[0] not in changed]
    if name == "ctranslate2" and changed & {"encoder", "decoder"}:
        common = [word for word in common if "layers" not in word]
    config = compose("train", [*common, *words])
    refusals = [*FORMATS[name].refusals(build_model(config, tokenizer), config.choices)]
    assert (setting, cure) in refusals


@NEEDS["ctranslate2"]
def test_weights_of_ctranslate2_are_stored_once_and_none_is_left_out(tokenizer: Tokenizer, here: Path) -> None:
    sizes = []
    for tie, folder in (("all", here / "tied"), ("none", here / "free")):
        folder.mkdir()
        model = drawn(tokenizer, "ctranslate2", f"model.tie_embeddings={tie}")[0]
        CTRANSLATE2.save(folder, model, tokenizer, "float32")
        sizes.append((folder / "model.bin").stat().st_size)
    assert sizes[1] - sizes[0] > 2 * tokenizer.source.size * 12 * 4 - 1000
    vocabulary = json.loads((here / "tied" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert vocabulary == tokenizer.source.pieces(range(tokenizer.source.size))
    model.decoder.kappa = nn.Parameter(torch.ones(4))
    with pytest.raises(UserError, match=r"CTranslate2 has no place for decoder\.kappa"):
        CTRANSLATE2.save(here, model, tokenizer, "float32")


@NEEDS["onnx"]
def test_the_operator_of_onnx_is_the_gru_of_torch_and_padding_gets_no_weight(tokenizer: Tokenizer, here: Path) -> None:
    import onnx
    import onnxruntime

    model, _ = drawn(tokenizer, "onnx", "decoder=luong", "attention/score=general")
    ONNX.save(here, model, tokenizer, "float32")
    (gru,) = (node for node in onnx.load(here / "encoder.onnx").graph.node if node.op_type == "GRU")
    assert {attribute.name: attribute.i for attribute in gru.attribute}["linear_before_reset"] == 1
    assert gru.input[4], "lengths"
    encoder, step = (onnxruntime.InferenceSession(here / f"{name}.onnx") for name in ("encoder", "step"))
    source = np.array([[5, 6, 7, 8, EOS], [9, EOS, 0, 0, 0]])
    results = encoder.run(None, {"source": source, "lengths": np.array([5, 2])})
    memory = dict(zip([output.name for output in encoder.get_outputs()], results, strict=True))
    assert not memory["values"][1, 2:].any()
    weights = step.run(["weights"], {"token": np.array([2, 2]), **memory})[0]
    assert np.allclose(weights.sum(1), 1, atol=1e-6)
    assert not weights[1, 2:].any()


@pytest.mark.parametrize(
    ("run", "words", "message"),
    [
        (
            "trained",
            ["output=here/taken"],
            "output=here/taken exists and is not empty. Name a new folder, or remove it.",
        ),
        ("trained", ["output=here/taken/file"], "output=here/taken/file is a file. Name a folder."),
        ("trained", ["output=out", "quantization=int4"], "quantization=int4: must be float32, float16,"),
        ("trained", ["output=out", "format=tflite"], "format=tflite: must be"),
        ("trained", ["output=out"], "encoder=gru and decoder=bahdanau. Give format=onnx, which can hold this run."),
        ("trained", [], "output= must be given. For example: python -m nmt.export run="),
        (
            "trained",
            ["format=onnx", "output=out", "quantization=int16"],
            "quantization=int16: must be float32 or int8 with format=onnx.",
        ),
        ("unattentive", ["format=onnx", "output=out"], "does not support decoder=none. Train a run with"),
        (
            "transformer",
            ["format=onnx", "output=out"],
            "encoder=transformer and decoder=transformer. Give format=",
        ),
    ],
)
def test_nothing_is_written_where_it_is_refused(
    run: str, words: list[str], message: str, here: Path, capfd: Capture, request: pytest.FixtureRequest
) -> None:
    (here / "here" / "taken").mkdir(parents=True)
    (here / "here" / "taken" / "file").write_text("mine", encoding="utf-8")
    before = snapshot(here)
    assert call("export", f"run={request.getfixturevalue(run)}", *words) == 1
    assert message in capfd.readouterr().err
    assert snapshot(here) == before


@pytest.mark.parametrize("name", FORMATS)
def test_missing_packages_are_named(
    name: str, trained: Path, transformer: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: find_spec(name) if name.startswith("nmt.") else None)
    run, packages = {"ctranslate2": (transformer, "ctranslate2"), "onnx": (trained, "onnx and onnxruntime")}[name]
    assert call("export", f"run={run}", f"format={name}", "output=out") == 1
    assert f"format={name} needs {packages}. Install with: {install_command('export')}" in capfd.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", WITH_PACKAGES)
def test_a_wrong_export_never_appears(
    name: str, trained: Path, transformer: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.export.conversion.largest_difference", lambda *_: float("nan"))
    run = {"ctranslate2": transformer, "onnx": trained}[name]
    assert call("export", f"run={run}", f"format={name}", "output=out") == 1
    assert "differ by up to nan from those of the run" in capfd.readouterr().err
    assert list(here.iterdir()) == []
