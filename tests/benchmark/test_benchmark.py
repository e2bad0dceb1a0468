"""The measuring scripts: clocks, logs of peers, mistakes, a whole run of tiny sizes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchmark
import numpy as np
import pytest
import quality_over_time
import torch
from benchmarking import clocks, flops, neighbours, numbers, peers, session
from benchmarking.plain import Plain, train_plain
from benchmarking.settings import (
    CURVES,
    FASTER,
    HEADS,
    MATCHED,
    QUICK,
    SEARCHES,
    TORCH_TRANSFORMER,
    TRANSFORMER,
    WIRINGS,
    Json,
    Place,
    Sizes,
    overrides,
)
from benchmarking.torch_transformer import replaced
from omegaconf import OmegaConf

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.data.batch import make_batch
from nmt.data.pairs import EncodedPairs, Ragged
from tests.benchmark.test_operations import SIZES

SCRIPT = Path(benchmark.__file__)


def pairs() -> EncodedPairs:
    """Four pairs, of 2 to 4 and 1 to 3 tokens."""
    source = Ragged([(np.full(13, 5, dtype=np.int32), np.array([0, 2, 5, 9, 13]))])
    target = Ragged([(np.full(9, 6, dtype=np.int32), np.array([0, 1, 3, 6, 9]))])
    return EncodedPairs(source, target, np.arange(4), {})


def test_the_clock_stops_after_the_updates_that_were_ordered() -> None:
    answers: list[Json] = []

    def exchange(answer: Json) -> Json | None:
        answers.append(answer)
        return {"updates": 2} if len(answers) < 3 else None

    place = Place("cpu", "float32", 1)
    feed = clocks.Feed(pairs(), exchange, place, tokens=100, sentences=2)
    with pytest.raises(clocks.Enough):
        train_plain(Plain(SIZES, 0.1), feed, place)
    assert [answer["updates"] for answer in answers] == [0, 2, 4]
    for answer in answers[1:]:  # two batches of two are an epoch
        assert answer["batches"] == 2
        assert sorted(answer["lengths"]) == [(3, 2), (4, 3), (5, 4), (5, 4)]  # with the ends
        assert answer["tokens"] == 13
        assert answer["seconds"] > 0


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_what_others_do_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, now = 70.0, 1000.0
    monkeypatch.setattr(neighbours, "_busy", lambda: busy)
    monkeypatch.setattr("time.monotonic", lambda: now)
    others = neighbours.Neighbours()
    busy, now = busy + 25, now + 10
    assert others.cores(own_seconds=20) == 0.5  # 5 seconds of CPU time in 10
    assert others.cores(own_seconds=26) == 0  # the two clocks do not agree to the tick
    monkeypatch.undo()
    before = neighbours._busy()
    assert before is not None
    assert before > 0


def test_curves_and_medians() -> None:
    straight = numbers.fit([1, 2, 4], [5, 7, 11])
    assert straight.coefficients == pytest.approx([3, 2])
    assert straight.r2 == pytest.approx(1)
    assert straight.at(10) == pytest.approx(23)
    assert numbers.fit([0, 1, 2], [0, 1, 0]).r2 == pytest.approx(0)
    assert numbers.fit([0, 1], [2, 2]).coefficients == pytest.approx([2, 0])
    square = numbers.fit([1, 2, 3, 4], [6, 11, 18, 27], 2)
    assert square.coefficients == pytest.approx([3, 2, 1])
    assert square.at(10) == pytest.approx(123)
    found = numbers.summary([{"x": 3.0}, {"x": 1.0}, {"x": 2.0}])
    assert found == {"x": 2.0, "spread": {"x": [1.0, 3.0]}, "rounds": 3}


def task(folder: Path) -> peers.Task:
    data = folder / "data"
    data.mkdir()
    for language in ("de", "en"):
        (data / f"test.{language}").write_text("eins\nzwei\ndrei\n", encoding="utf-8")
    return peers.Task(data, folder / "own", ("de", "en"), MATCHED.sizes, 80, 80, 1, False, 2)


def test_peers_are_run_and_understood(tmp_path: Path, python: str) -> None:
    for kind, trained, sentences in ((peers.Joey, 600, 4), (peers.OpenNMT, 600, 250)):
        folder = tmp_path / kind.name
        folder.mkdir()
        peer = peers.find(kind, python, task(folder))
        assert isinstance(peer, peers.Peer)
        assert peer.version == "9.8"
        assert peer.train(6) == pytest.approx(trained)  # the first report is left out
        done = peer.translate()
        assert done.sentences_per_second == pytest.approx(sentences)
        assert done.texts == ["eins", "zwei"]
        assert peer.peak_memory > 0


def test_the_speed_is_that_of_all_reports_but_the_first() -> None:
    assert peers.speed([10, 400, 1200]) == pytest.approx(600)  # 2 / (1 / 400 + 1 / 1200)
    assert peers.speed([10]) == 10


@pytest.mark.parametrize("kind", peers.PEERS)
def test_the_clock_of_a_peer_stands_still_while_it_keeps_weights(
    kind: type[peers.Peer], tmp_path: Path, python: str
) -> None:
    peer = peers.find(kind, python, task(tmp_path))
    assert isinstance(peer, peers.Peer)
    kept = peer.learn(minutes=1, points=3, pilot=6)  # 2 seconds an update: 30 of them, kept every 10
    assert [(own.update, own.minutes) for own in kept] == [(10, 20 / 60), (20, 40 / 60), (30, 1.0)]
    assert all(own.model.is_file() for own in kept)
    assert peer.translate(kept[0].model).texts == ["eins", "zwei"]
    if kind is peers.OpenNMT:  # in proportion to 2,000 and 350 of 3,400
        config = OmegaConf.load(peer.task.folder / "onmt.yaml")
        assert (config.learning_rate_decay, config.start_decay_steps, config.decay_steps) == (0.5, 17, 3)
        assert (config.train_steps, config.save_checkpoint_steps) == (30, 10)


def test_a_model_that_is_not_kept_is_said(tmp_path: Path, python: str) -> None:
    peer = peers.find(peers.Joey, python, task(tmp_path))
    assert isinstance(peer, peers.Peer)
    with pytest.raises(peers.PeerError, match=r"joeynmt\.ckpt is not there"):
        peer.kept_in(tmp_path)
    (tmp_path / "joeynmt.ckpt").touch()
    assert peer.kept_in(tmp_path) == tmp_path / "joeynmt.ckpt"


def test_peers_configurations(tmp_path: Path, python: str) -> None:
    made: list[Any] = []
    for kind, name in ((peers.Joey, "joey.yaml"), (peers.OpenNMT, "onmt.yaml")):
        folder = tmp_path / kind.name
        folder.mkdir()
        peer = peers.find(kind, python, task(folder))
        assert isinstance(peer, peers.Peer)
        peer.train(60)
        made.append(OmegaConf.to_container(OmegaConf.load(peer.task.folder / name)))
    joey, onmt = made
    assert joey["training"]["updates"] == onmt["train_steps"] == 60
    assert joey["training"]["logging_freq"] == onmt["report_every"] == 10
    assert joey["training"]["validation_freq"] % 10 == 0
    assert joey["model"]["decoder"]["hidden_size"] == onmt["dec_hid_size"] == 512
    assert joey["model"]["encoder"]["hidden_size"] == onmt["enc_hid_size"] // 2
    assert joey["data"]["trg"] == {**joey["data"]["src"], "lang": "en"}
    assert joey["training"]["batch_size"] == onmt["batch_size"] == 80


def test_a_missing_peer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_JOEY_PYTHON", raising=False)
    assert "NMT_JOEY_PYTHON" in str(peers.find(peers.Joey, None, task(tmp_path)))
    (tmp_path / "more").mkdir()
    assert "does not run" in str(peers.find(peers.Joey, str(tmp_path / "none"), task(tmp_path / "more")))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "trainin"], "'training'"),
        (["--data", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--rounds", "0"], "--rounds"),
        (["--round-robin"], "--round-robin"),
        (["--device", "tpu"], "tpu"),
        (["--json", "/proc/none/results.json"], "/proc/none"),
        (["--models", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--models", "/nowhere", "--tokenizer", "/some.model"], "--tokenizer"),
    ],
)
def test_mistakes_are_said_at_once(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(words) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "joey"], "'joeynmt'"),
        (["--precision", "fp16"], "bf16"),
        (["--minutes", "0"], "--minutes"),
        (["--points", "few"], "--points"),
        (["--tokenizer", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--models", "/proc/none"], "/proc/none"),
    ],
)
def test_mistakes_about_quality_are_said_at_once(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quality_over_time.main(words) == 1
    assert said in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_case_that_cannot_be_measured_ends_with_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--quick", "--device", "cuda"]) == 1
    assert "no CUDA GPU" in capfd.readouterr().err


def test_the_leading_processes_load_no_torch() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import benchmark, quality_over_time; "
        "print(sorted({'torch', 'numpy', 'matplotlib', 'sentencepiece'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_a_whole_run(tmp_path: Path, python: str) -> None:
    file = tmp_path / "results" / "all.json"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NMT_")}
    done = subprocess.run(
        [
            *(sys.executable, str(SCRIPT), "--quick", "--threads", "1", "--json", str(file), "--plot", str(tmp_path)),
            *("--peers", "--joey-python", python),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    assert "the built-in one" in done.stderr
    assert (tmp_path / "benchmark-growth.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text(encoding="utf-8"))
    for key in ("cpu", "cores", "threads", "torch", "python"):
        assert found["machine"][key]
    sizes = Sizes(**found["settings"]["model"])
    assert found["corpus"]["pieces"] == sizes.pieces
    _check_training(found["training"], sizes, found["corpus"])
    for name in WIRINGS:
        for search in SEARCHES:
            own = found["translating"][name][search]
            assert own["sentences_per_second"] == own["batches"]["64"]["sentences_per_second"] > 0
            assert list(own["batches"]) == ["1", "64"]
            assert own["batches"]["1"]["peak_memory_bytes"] > 2**20
            assert 0 <= own["bleu"] <= 100
    for way, (precision, _, batch) in FASTER.items():
        if precision != "float32" and not found["machine"][precision]:
            continue
        own = found["translating"]["bahdanau"][way]
        assert list(own["batches"]) == [str(batch)]
        assert own["sentences_per_second"] > 0
        ratio = found["peers"]["joeynmt"]["translating"]["faster"][way]["ratio"]["ours_over_theirs"]
        assert ratio == pytest.approx(own["sentences_per_second"] / 8)
    assert {curve["axis"] for curves in found["growth"].values() for curve in curves} == set(QUICK.growth)
    assert sum(len(curves) for curves in found["growth"].values()) == len(CURVES)
    for curves in found["growth"].values():
        for curve in curves:
            assert len(curve["values"]) == len(curve["median"]) == len(curve["spread"])
            assert curve["r2"] <= 1
    joey = found["peers"]["joeynmt"]
    assert joey["training"]["tokens_per_second"] == pytest.approx(600)
    ours = found["training"]["bahdanau"]["tokens_per_second"]
    assert joey["training"]["ratio"]["ours_over_theirs"] == pytest.approx(ours / 600)
    assert joey["translating"]["sentences_per_second"] == pytest.approx(8)  # 4 sentences in half a second
    assert "NMT_ONMT_PYTHON" in found["peers"]["opennmt-py"]["missing"]
    theirs, ours = joey["translating"], found["translating"]["bahdanau"]["beam5"]
    assert theirs["our_bleu"] == ours["bleu"]
    assert theirs["pieces_per_sentence"] > 0
    _check_transformer(found["transformer"], sizes)
    _check_startup(found["startup"])
    assert "ours beam5_shortlist_128, sentences/s" in done.stdout
    for heading in ("## Training", "## Translating", "## Peers", "## Start-up", "## Growth with beam size"):
        assert heading in done.stdout


def _check_startup(startup: Json) -> None:
    assert startup["answer_seconds"] > 0
    least = startup["import_torch_seconds"] + startup["read_model_seconds"]
    assert startup["ratio"] == pytest.approx(startup["answer_seconds"] / least)
    assert startup["served_over_answer"] == pytest.approx(startup["served_seconds"] / startup["answer_seconds"])


def _check_training(training: Json, sizes: Sizes, corpus: Json) -> None:
    for name in WIRINGS:
        own = training[name]
        low, high = own["spread"]["tokens_per_second"]
        assert 0 < low <= own["tokens_per_second"] <= high
        assert own["rounds"] == 1
        assert own["fraction_of_limit"] == pytest.approx(own["tokens_per_second"] / own["limit_tokens_per_second"])
        assert own["peak_memory_bytes"] > 2**20
        assert own["sentences_per_batch"] <= QUICK.batch
        # Counted pair by pair; a pair of mean lengths has about as much a token.
        source, target = (round(corpus[f"{side}_tokens"]) for side in ("source", "target"))
        assert own["flops_per_token"] == pytest.approx(
            flops.pair(sizes, WIRINGS[name], source, target) / target, rel=0.5
        )


def _check_transformer(measured: Json, sizes: Sizes) -> None:
    assert measured["sizes"] == {**QUICK.transformer._asdict(), "pieces": sizes.pieces}
    assert "NMT_ONMT_PYTHON" in measured["missing"]
    ours, theirs = measured["transformer"], measured[TORCH_TRANSFORMER]
    for own in (ours, theirs):
        assert own["fraction_of_limit"] == pytest.approx(own["tokens_per_second"] / own["limit_tokens_per_second"])
    assert ours["ratio"]["ours_over_theirs"] == 1
    assert ours["tokens_per_second"] == pytest.approx(theirs["tokens_per_second"] * theirs["ratio"]["ours_over_theirs"])


def test_the_transformer_of_torch_is_the_same_model() -> None:
    """The features of our layers with the weights of torch's, padding and future hidden in both."""
    sizes = Sizes(11, 8, 8, 8, 8, 8, layers=2)
    config = compose("train", overrides(TRANSFORMER, sizes, 4, 80))
    ours, theirs = (build.assemble(config, 11, 11, True).eval() for _ in range(2))
    theirs = replaced(theirs, sizes, 0.1).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
    assert sum(own.numel() for own in ours.parameters()) == sum(own.numel() for own in theirs.parameters())
    own, other = ours.state_dict(), theirs.state_dict()
    for name in own:
        own[name] = other[name] if name in other else _of_torch(other, name)
    ours.load_state_dict(own)
    batch = make_batch([[4, 5, 6], [7]], [[7, 8], [9, 10, 4, 5]])
    inputs = (batch.source, batch.source_mask, batch.source_lengths, batch.target_in)
    features, expected = (made(*inputs).features[batch.target_mask] for made in (ours, theirs))
    torch.testing.assert_close(features, expected, atol=1e-5, rtol=1e-5)
    dropouts = [layer.p for layer in theirs.modules() if isinstance(layer, torch.nn.Dropout)]
    assert dropouts.count(0.0) == 5  # of the inner layers and before the softmax
    assert {layer.dropout for layer in theirs.modules() if isinstance(layer, torch.nn.MultiheadAttention)} == {0.0}


def _of_torch(other: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """A parameter of our layers among torch's."""
    side, *rest = name.split(".")
    if rest[0] == "norm":
        return other[f"{side}.stack.norm.{rest[1]}"]
    _, layer, part, *inner = rest
    stack = f"{side}.stack.layers.{layer}"
    norms = {"around_self": "norm1", "around_attention": "norm2"}
    norms["around_feed_forward"] = "norm2" if side == "encoder" else "norm3"
    if part in norms:
        return other[f"{stack}.{norms[part]}.{inner[-1]}"]
    if part == "feed_forward":
        return other[f"{stack}.linear{1 if inner[0] == 'inner' else 2}.{inner[1]}"]
    attention = f"{stack}.{'self_attn' if part == 'self_attention' else 'multihead_attn'}"
    if inner[0] == "out":
        return other[f"{attention}.out_proj.{inner[1]}"]
    return other[f"{attention}.in_proj_{inner[1]}"].chunk(3)[("query", "key", "value").index(inner[0])]


def test_the_transformer_of_opennmt_is_configured_as_ours(tmp_path: Path, python: str) -> None:
    sizes = MATCHED.transformer
    peer = peers.find(peers.OpenNMTTransformer, python, task(tmp_path)._replace(sizes=sizes))
    assert isinstance(peer, peers.Peer)
    assert peer.train(6) == pytest.approx(600)
    config = OmegaConf.load(peer.task.folder / "onmt.yaml")
    assert config.encoder_type == config.decoder_type == "transformer"
    assert (config.enc_layers, config.dec_layers, config.heads) == (3, 3, HEADS)
    assert (config.hidden_size, config.word_vec_size, config.transformer_ff) == (256, 256, 1024)
    assert config.share_decoder_embeddings
    assert config.share_embeddings


def test_the_parts_are_those_of_the_help() -> None:
    words = benchmark.options(benchmark.parser().parse_args(["--only", "growth,training"]))
    assert words.parts == ["growth", "training"]
    assert benchmark.options(benchmark.parser().parse_args([])).parts == list(session.PARTS)
