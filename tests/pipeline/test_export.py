"""Runs as CTranslate2 models: they translate the same, and what CTranslate2 does not know is refused."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt import build
from nmt.command.composing import compose
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.model.transformer.layer import FeedForward
from nmt.pipeline.ctranslate2_model import check_convertible, largest_difference, to_ctranslate2
from nmt.text.canonical import shows_nothing
from nmt.text.tokenizer import EOS, Tokenizer
from tests.pipeline.drawn import drawn_model, joint_tokenizer
from tests.pipeline.small import BOTH, ODD_LINES, call, many_lines, pairs, snapshot, write_lines

Capture = pytest.CaptureFixture[str]

needs_ctranslate2 = pytest.mark.skipif(
    find_spec("ctranslate2") is None, reason="needs ctranslate2: pip install 'nmt[export]'"
)
SMALL = ("model.embedding_size=12", "encoder.layers=2", "decoder.layers=1")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with one vocabulary for both languages."""
    return joint_tokenizer()


def drawn(tokenizer: Tokenizer, *words: str) -> tuple[Seq2Seq, dict[str, str]]:
    """A small model with drawn weights, and its choices."""
    return drawn_model(tokenizer, [*BOTH, *SMALL], words)


# What CTranslate2 knows


@needs_ctranslate2
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("encoder.norm=post", "decoder.norm=post", "encoder.feed_forward_size=7"),
        ("encoder.norm=post", "encoder.self_attention.heads=3"),
        ("encoder/positions=learned", "encoder.positions.count=9", "decoder/positions=learned"),
        ("encoder/positions=none", "decoder/positions=relative", "decoder.self_attention.heads=1", "attention.heads=1"),
        ("encoder/positions=relative", "encoder.self_attention.heads=1", "encoder.positions.distance=3"),
        ("model.tie_embeddings=none", "encoder.size=20", "decoder.size=16"),
        ("model.tie_embeddings=none", "encoder.size=8", "encoder/positions=relative", "encoder.self_attention.heads=1"),
        ("model.tie_embeddings=target", "attention.bias=false", "encoder.self_attention.bias=false"),
    ],
    ids=" ".join,
)
def test_the_export_gives_the_models_probabilities(tokenizer: Tokenizer, words: tuple[str, ...], here: Path) -> None:
    model, choices = drawn(tokenizer, *words)
    check_convertible(model, choices, here)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    to_ctranslate2(model, tokenizer, "float32").save(str(here))
    assert all(parameter.equal(before[name]) for name, parameter in model.named_parameters())
    assert largest_difference(here, model, tokenizer) < 1e-4
    with torch.no_grad():
        model.output.bias[EOS] += 0.01
    assert largest_difference(here, model, tokenizer) > 1e-3, "the difference is seen"


@needs_ctranslate2
def test_weights_are_stored_once_and_vocabularies_in_order(tokenizer: Tokenizer, here: Path) -> None:
    sizes = []
    for tie, folder in (("all", here / "tied"), ("none", here / "free")):
        folder.mkdir()
        to_ctranslate2(drawn(tokenizer, f"model.tie_embeddings={tie}")[0], tokenizer, "float32").save(str(folder))
        sizes.append((folder / "model.bin").stat().st_size)
    assert sizes[1] - sizes[0] > 2 * tokenizer.source.size * 12 * 4 - 1000
    vocabulary = json.loads((here / "tied" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert vocabulary == tokenizer.source.pieces(range(tokenizer.source.size))


def translated(program: Path, source: Path) -> list[str]:
    """What the exported program makes of a file, from another folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    with source.open("rb") as stream:
        done = subprocess.run([sys.executable, program], stdin=stream, capture_output=True, env=environment, cwd="/")
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode("utf-8").split("\n")


@needs_ctranslate2
@pytest.mark.parametrize("search", [("search=greedy",), ("search.beam_size=3", "search.length_penalty=0")], ids=str)
def test_it_translates_as_the_run_does(transformer: Path, search: tuple[str, ...], here: Path, capfd: Capture) -> None:
    """With the program in the folder, beside other files, from another folder."""
    lines = [*many_lines(), *ODD_LINES]
    source = write_lines(here / "in", lines)
    assert call("export", f"run={transformer}", f"output={here / 'out dir'}") == 0
    assert "out dir: weights in float32, log-probabilities as the run's (largest difference: " in capfd.readouterr().err
    assert call("translate", f"run={transformer}", f"input={source}", f"output={here / 'ours'}", *search) == 0
    program = here / "out dir" / "translate.py"
    beam, penalty = (1, 0.0) if "search=greedy" in search else (3, 0.0)
    text = program.read_text(encoding="utf-8")
    line = "BEAM_SIZE, LENGTH_PENALTY = 5, 1.0\n"
    assert line in text, "the run's search"
    program.write_text(text.replace(line, f"BEAM_SIZE, LENGTH_PENALTY = {beam}, {penalty}\n"), encoding="utf-8")
    translations = translated(program, source)
    ours = (here / "ours").read_text(encoding="utf-8").split("\n")
    assert [not text for text in ours[:-1]] == [shows_nothing(line) for line in lines]
    assert [ours[-5], ours[-4], ours[-3]] == ["", "", ours[-2]] != [""] * 3
    assert translations == ours
    readme = (here / "out dir" / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# numbers: a translator, de to en\n")
    for name in ("tokenizer.model", "model.bin", "config.json", "shared_vocabulary.json"):
        assert (here / "out dir" / name).is_file()


@needs_ctranslate2
def test_weights_are_quantised(transformer: Path, here: Path, capfd: Capture) -> None:
    source = write_lines(here / "in", [row[0] for row in pairs(60)])
    translations, sizes = [], []
    for kind in ("float32", "int8"):
        (here / kind).mkdir()  # an empty folder is as good as none
        assert call("export", f"run={transformer}", f"output={here / kind}", f"quantization={kind}") == 0
        translations.append(translated(here / kind / "translate.py", source))
        sizes.append((here / kind / "model.bin").stat().st_size)
    assert sizes[1] < sizes[0] - 100_000
    assert 50 <= sum(one == two for one, two in zip(*translations, strict=True)) <= 61
    assert "weights in int8.\n" in capfd.readouterr().err


# What is refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["encoder=gru"], "CTranslate2 cannot hold encoder=gru. Train a run with encoder=transformer."),
        (["decoder=luong"], "CTranslate2 cannot hold decoder=luong. Train a run with decoder=transformer."),
        (["encoder/score=additive"], "know encoder/score=additive. Train a run with encoder/score=scaled_dot."),
        (["attention/score=general"], "know attention/score=general. Train a run with attention/score=scaled_dot."),
        (["decoder/window=local_m"], "know decoder/window=local_m. Train a run with decoder/window=global."),
        (["attention/window=local_p"], "know attention/window=local_p."),
        (["attention/read=hard"], "know attention/read=hard. Train a run with attention/read=soft."),
        (["attention/normaliser=sparsemax"], "this run has attention/normaliser=sparsemax"),
        (["decoder/normaliser=entmax"], "Train a run with decoder/normaliser=softmax"),
        (["attention.project=false", "attention.heads=1"], "this run has attention.project=false"),
        (["encoder.branches=true"], "know encoder.branches=true. Train a run with encoder.branches=false."),
        (["decoder.branches=true"], "know decoder.branches=true. Train a run with decoder.branches=false."),
        (["attention.size=24"], "attention.size=24: CTranslate2 wants decoder.size=12 here."),
        (["encoder.self_attention.size=24"], "encoder.self_attention.size=24: CTranslate2 wants encoder.size=12 here."),
        (["attention.heads=2"], "decoder.self_attention.heads=4 and attention.heads=2: CTranslate2 has one number"),
        (["encoder/positions=relative"], "encoder/positions=relative with encoder.self_attention.heads=4"),
        (["context.sentences=1"], "CTranslate2 translates single sentences, and this run sees previous ones."),
    ],
)
def test_what_ctranslate2_does_not_know_is_refused_by_its_setting(
    tokenizer: Tokenizer, words: list[str], message: str, here: Path
) -> None:
    others = [word for word in (*BOTH, *SMALL) if word.split("=")[0] not in {each.split("=")[0] for each in words}]
    if any(word in words for word in ("encoder=gru", "decoder=luong")):
        others = [word for word in others if "layers" not in word]
    config = compose("train", [*others, *words])
    with pytest.raises(UserError, match=r"^checkpoints/x cannot be exported: ") as caught:
        check_convertible(build.build_model(config, tokenizer), config.choices, Path("checkpoints/x"))
    assert message in str(caught.value)


@needs_ctranslate2
def test_a_weight_without_a_place_is_refused(tokenizer: Tokenizer) -> None:
    model, _ = drawn(tokenizer)
    model.decoder.kappa = nn.Parameter(torch.ones(4))
    with pytest.raises(UserError, match=r"CTranslate2 has no place for decoder\.kappa"):
        to_ctranslate2(model, tokenizer, "float32")


def test_another_kind_of_layer_is_refused(tokenizer: Tokenizer, here: Path) -> None:
    class Other(FeedForward):
        """Has the same weights, and may compute anything."""

    model, choices = drawn(tokenizer)
    model.encoder.get_submodule("layers.1.feed_forward").__class__ = Other
    with pytest.raises(UserError, match="CTranslate2 does not know the encoder's Other"):
        check_convertible(model, choices, here)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["output=here/taken"], "output=here/taken exists and is not empty. Name a new folder, or remove it."),
        (["output=here/taken/file"], "output=here/taken/file is a file. Name a folder."),
        (["output=out", "quantization=int4"], "quantization=int4: must be float32, float16,"),
        (["output=out", "format=tflite"], "format=tflite: must be"),
        (["output=out"], "CTranslate2 cannot hold encoder=gru. Give format=onnx, which can hold this run."),
        ([], "output= must be given. For example: python -m nmt.export run="),
    ],
)
def test_nothing_is_written_where_it_is_refused(
    more: list[str], message: str, trained: Path, here: Path, capfd: Capture
) -> None:
    (here / "here" / "taken").mkdir(parents=True)
    (here / "here" / "taken" / "file").write_text("mine", encoding="utf-8")
    before = snapshot(here)
    assert call("export", f"run={trained}", *more) == 1
    assert message in capfd.readouterr().err
    assert snapshot(here) == before


def test_the_missing_package_is_named(
    transformer: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert call("export", f"run={transformer}", "output=out") == 1
    assert "needs the package ctranslate2. Install it: pip install 'nmt[export]'" in capfd.readouterr().err
    assert list(here.iterdir()) == []


@needs_ctranslate2
def test_a_wrong_export_never_appears(
    transformer: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.pipeline.exporting.largest_difference", lambda *_: float("nan"))
    assert call("export", f"run={transformer}", "output=out") == 1
    assert "differ by up to nan from those of the run" in capfd.readouterr().err
    assert list(here.iterdir()) == []
