"""The measuring scripts: arithmetic by hand and as torch counts it, clocks, logs of peers, whole runs of tiny sizes."""

import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import benchmark
import quality_over_time
from benchmarking import clocks, costs, flops, neighbours, numbers, peers, quality, report, session
from benchmarking.flops import Product
from benchmarking.plain import Plain, train_plain
from benchmarking.settings import (
    CURVES,
    FASTER,
    MATCHED,
    QUICK,
    SEARCHES,
    WIRINGS,
    Json,
    Place,
    Sizes,
    overrides,
    recipe,
    unattended,
)

from nmt import build
from nmt.command.composing import compose
from nmt.data.batch import make_batch
from nmt.data.pairs import EncodedPairs, Ragged
from nmt.errors import UserError

SCRIPT = Path(benchmark.__file__)

#: Sizes that are all different, but for what has to be the same.
SIZES = Sizes(pieces=11, embedding=3, encoder=2, decoder=5, attention=6, features=7)

# One pair of 2 source and 3 target tokens; 2 x rows x inner x columns each, "3 times" for 3 target tokens.
ENCODER = 2 * (2 * 2 * 3 * 6 + 2 * (2 * 1 * 2 * 6))  # both directions: inputs at once, states one after the other
WORDS, STATES, SOFTMAX = 2 * 3 * 3 * 15, 3 * (2 * 5 * 15), 2 * 3 * 7 * 11
BY_HAND = {
    "bahdanau": ENCODER
    + 2 * 2 * 5  # first state, from the backward encoder's last one
    + 2 * 2 * 4 * 6  # keys
    + 3 * (2 * 5 * 6)  # queries
    + 3 * (2 * 2 * 6 * 1)  # energies of 2 slots
    + 3 * (2 * 2 * 4)  # contexts
    + WORDS
    + 3 * (2 * 4 * 15)  # contexts into the gates
    + STATES
    + 2 * 3 * (4 + 5 + 3) * 14  # maxout
    + SOFTMAX,
    "luong": ENCODER
    + 2 * 4 * 5  # first state
    + 2 * 2 * 4 * 5  # keys
    + 3 * (2 * 5 * 2)  # energies
    + 3 * (2 * 2 * 4)  # contexts
    + WORDS
    + 3 * (2 * 7 * 15)  # features into the gates
    + STATES
    + 2 * 3 * (4 + 5) * 7  # tanh
    + SOFTMAX,
    "none": ENCODER
    + 2 * 4 * 5  # first state
    + WORDS
    + 2 * 4 * 15  # the summary into the gates, once a sentence
    + STATES
    + 2 * 4 * 14  # the summary into the maxout
    + 2 * 3 * (5 + 3) * 14  # the rest of the maxout
    + SOFTMAX,
}
BY_HAND["luong_without_feeding"] = BY_HAND["luong"] - 3 * (2 * 7 * 15)


@pytest.mark.parametrize("name", WIRINGS)
def test_operations_by_hand(name: str) -> None:
    assert sum(product.flops for product in flops.forward(SIZES, WIRINGS[name], 1, 2, 3)) == BY_HAND[name]
    assert flops.pair(SIZES, WIRINGS[name], 2, 3) == 3 * BY_HAND[name]
    assert flops.total(SIZES, WIRINGS[name], [(2, 3), (2, 3)]) == 6 * BY_HAND[name]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", WIRINGS)
def test_operations_are_those_that_torch_counts(name: str, layers: int) -> None:
    sizes = SIZES._replace(layers=layers)
    config = compose("train", [*overrides(WIRINGS[name], sizes, 4, 80), "model.fast=false"])
    model = build.assemble(config, sizes.pieces, sizes.pieces, True).eval().requires_grad_(False)
    batch = make_batch([[4, 5, 6]] * 4, [[7, 8, 9, 10, 4]] * 4)  # no padding; 4 and 6 tokens with their ends

    def vectors(matrix: tuple[int, int], *_: object, **__: object) -> int:
        return 2 * matrix[0] * matrix[1]

    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.mv: vectors})
    with counter, torch.no_grad():
        decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in)
        model.logits(decoded.features[batch.target_mask])
    assert counter.get_total_flops() == sum(own.flops for own in flops.forward(sizes, WIRINGS[name], 4, 4, 6))


@pytest.mark.parametrize("name", WIRINGS)
def test_a_step_has_three_products_for_each_of_the_forward_pass(name: str) -> None:
    forward = [own for own in flops.forward(MATCHED.sizes, WIRINGS[name], 80, 16, 15) if own.weights]
    assert sum(own.flops for own in flops.training(MATCHED.sizes, WIRINGS[name], 80, 16, 15)) == 3 * sum(
        own.flops for own in forward
    )
    # What the limit leaves out is next to nothing.
    everything = sum(own.flops for own in flops.forward(MATCHED.sizes, WIRINGS[name], 80, 16, 15))
    assert sum(own.flops for own in forward) > 0.99 * everything


def test_the_rate_is_that_of_all_products_together() -> None:
    place = Place("cpu", "float32", 1)
    products = [Product("a", 8, 16, 32, steps=3), Product("b", 8, 16, 32), Product("c", 64, 8, 8, copies=2)]
    assert 0 < costs.rate(products, 0.002, place, torch.float32) < math.inf


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
    assert others.cores(own=20) == 0.5  # 5 seconds of CPU time in 10
    assert others.cores(own=26) == 0  # the two clocks do not agree to the tick
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


# A peer's Python that says what the real ones say. By its log an update takes 2 seconds and keeping weights 7.
FAKE = """\
#!/bin/sh
''''exec '{python}' "$0" "$@" # '''
import datetime, os, pathlib, re, sys
words = sys.argv[1:]
second = datetime.timedelta(seconds=1)

def train(file, updates, every, kept, began, report, files):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    updates, every, kept = (int(re.search(rf"{{key}}: (\\d+)", text)[1]) for key in (updates, every, kept))
    now = datetime.datetime(2030, 1, 1, 0, 0, 3, tzinfo=datetime.UTC)
    stamp = lambda: now.strftime("%Y-%m-%d %H:%M:%S,000")
    print(began.format(stamp()))
    for update in range(1, updates + 1):
        now += 2 * second
        if update % every == 0:
            print(report.format(stamp(), update, 10 if update == every else 600))
        if update % kept == 0 or update == updates:
            for own, seconds in files.items():
                now += seconds * second
                path = pathlib.Path(own.format(update))
                path.parent.mkdir(exist_ok=True)
                path.touch()
                os.utime(path, (now.timestamp(), now.timestamp()))

if words[0] == "-c":
    print("version 9.8")
elif words[1:3] == ["joeynmt", "train"]:
    train(
        "joey.yaml", "updates", "logging_freq", "validation_freq",
        "{{}} - INFO - joeynmt.training - EPOCH 1",
        "{{}} - INFO - joeynmt.training - Epoch   1, Step: {{:8d}}, Batch Loss:    80.500000, Batch Acc: 0.100000, "
        "Tokens per Sec: {{:8.0f}}, Lr: 0.001000",
        {{"joey/{{}}.ckpt": 5, "joey/{{}}.hyps": 2}},
    )
elif words[1:3] == ["joeynmt", "test"]:
    lines = pathlib.Path("text.de").read_text(encoding="utf-8")
    pathlib.Path("joey.out.test").write_text(lines, encoding="utf-8")
    print("Generation took 0.1000[sec].\\nGeneration took 0.5000[sec].")
elif words[1] == "onmt.bin.train":
    train(
        "onmt.yaml", "train_steps", "report_every", "save_checkpoint_steps",
        "[{{}} INFO] Start training loop and validate every 1000000 steps...",
        "[{{}} INFO] Step {{:2d}}/    6; acc: 1.0; ppl: 9.0; xent: 9.1; lr: 0.00100; sents:      16; "
        "bsz:  123/ 119/ 8; 650/{{:3.0f}} tok/s;     20 sec;",
        {{"onmt_model_step_{{}}.pt": 7}},
    )
elif words[1] == "onmt.bin.translate":
    assert pathlib.Path(words[words.index("-model") + 1]).exists()
    lines = pathlib.Path("text.de").read_text(encoding="utf-8")
    pathlib.Path("onmt.out").write_text(lines, encoding="utf-8")
    print("[x INFO] Total translation time (s): 0.0\\n[x INFO] Average translation time (ms): 4.0")
else:
    sys.exit(3)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that pretends to have the peers installed."""
    path = tmp_path / "bin" / "python"
    path.parent.mkdir()
    path.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


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
    for way in FASTER:
        own = found["translating"]["bahdanau"][way]
        assert list(own["batches"]) == ["64"]
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
    startup = found["startup"]
    assert startup["answer_seconds"] > 0
    least = startup["import_torch_seconds"] + startup["read_model_seconds"]
    assert startup["ratio"] == pytest.approx(startup["answer_seconds"] / least)
    assert "ours beam5_bf16_shortlist, sentences/s" in done.stdout
    for heading in ("## Training", "## Translating", "## Peers", "## Start-up", "## Growth with beam size"):
        assert heading in done.stdout


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


def test_the_parts_are_those_of_the_help() -> None:
    words = benchmark.options(benchmark.parser().parse_args(["--only", "growth,training"]))
    assert words.parts == ["growth", "training"]
    assert benchmark.options(benchmark.parser().parse_args([])).parts == list(session.PARTS)


def test_our_clock_stands_still_while_weights_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    feed = clocks.Timed(pairs(), tokens_per_batch=100, sentences_per_batch=1)
    still = clocks.Still(pairs(), tokens_per_batch=100)
    clock = feed.clock = still.clock = clocks.Clock()
    now += 1000  # nothing has begun
    updates, seen = 0, []
    for epoch in range(2):
        for _ in feed.epoch(epoch):
            now += 2  # an update
            updates += 1
            if updates in (3, 4):  # in the midst of an epoch, and after its last batch
                assert list(still.epoch(0)) == []
                now += 100
                seen.append(clock.stop())
    assert updates == 8
    assert seen == [6, 8]
    assert clock.stop() == 16


def test_recipes() -> None:
    budget = unattended("minutes", 40, 100)
    matched = compose("train", [*recipe("nmt", True, MATCHED), *budget])
    plain = compose("train", [])
    assert (matched.trainer.steps, matched.trainer.epochs, matched.trainer.minutes) == (None, None, 40)
    assert matched.trainer.sentences_per_batch == 80
    assert (matched.model.tie_embeddings, matched.decoder.size, matched.attention.size) == ("none", 512, 512)
    assert matched.optimizer == plain.optimizer
    assert matched.schedule == plain.schedule
    assert matched.trainer.average == plain.trainer.average
    for multi30k, choice in ((True, "experiment=multi30k"), (False, "data=builtin")):
        whole = compose("train", [choice])
        own = compose("train", [*recipe("nmt-default", multi30k, MATCHED), *budget])
        for part in ("model", "encoder", "decoder", "attention", "optimizer", "schedule", "tokenizer"):
            assert own[part] == whole[part]
        assert own.trainer.tokens_per_batch == whole.trainer.tokens_per_batch
        assert own.trainer.validate_every == 100


def curve(*points: tuple[float, float]) -> list[Json]:
    """Points of (minutes, BLEU)."""
    return [{"update": 1, "minutes": minutes, "bleu": bleu} for minutes, bleu in points]


def test_quality_is_read_off_the_curve() -> None:
    points = curve((1, 4), (3, 8), (5, 7), (7, 12))
    assert report._minutes_until(points, 3) == 1  # no later than the first
    assert report._minutes_until(points, 6) == 2
    assert report._minutes_until(points, 8) == 3
    assert report._minutes_until(points, 10) == pytest.approx(5 + 2 * 3 / 5)
    assert report._minutes_until(points, 13) is None
    assert report._bleu_after(points, 0.5) is None
    assert report._bleu_after(points, 6) == 7
    ours = {"title": "ours", "version": "1", "ours": True, "points": points}
    theirs = {"title": "theirs", "version": "2", "ours": False, "points": curve((6, 9), (9, 6))}
    programs = {"nmt": ours, "joeynmt": theirs}
    assert list(report._levels(programs)) == [5, 10]
    assert report._overtaken(programs) == [
        "theirs's best, 9.0 after 6.0 minutes: reached after 5.8 minutes by ours."  # 5 + 2 x 2 / 5
    ]


def test_a_measurement_of_something_else_is_not_taken_up(tmp_path: Path) -> None:
    now: Json = {
        "settings": {"minutes": 40, "quick": False},
        "corpus": {"name": "m30k-de-en", "pairs": 29000, "notes": ["here"]},
        "machine": {"cpu": "x", "cores": 2, "threads": 2, "torch": "2"},
    }
    quality._check_same(tmp_path, {**now, "corpus": {**now["corpus"], "notes": ["there"]}}, now)
    for kind, key, value in (("settings", "minutes", 5), ("corpus", "pairs", 100), ("machine", "threads", 1)):
        with pytest.raises(UserError, match=rf"{kind}\.{key} was {value}, and is"):
            quality._check_same(tmp_path, {**now, kind: {**now[kind], key: value}}, now)
    for text in ("{", "[]", "{}", '{"machine": {}, "corpus": {}, "settings": {}, "programs": []}'):
        (tmp_path / "all.json").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"all\.json"):
            quality._read(tmp_path / "all.json")


# One process, so that what all cases load is loaded once.
SITTINGS = """
import shutil, sys
sys.path.insert(0, sys.argv[1])
import benchmark, quality_over_time
quick = ["--quick", "--threads", "1"]
own = [*quick, "--json", "all.json", "--plot", ".", "--models", "models", "--joey-python", sys.argv[2]]
assert quality_over_time.main([*own, "--only", "nmt"]) == 0
shutil.copy("all.json", "first.json")
assert quality_over_time.main(own) == 0
assert benchmark.main([*quick, "--models", "models", "--only", "startup"]) == 0
assert quality_over_time.main([*own, "--minutes", "7"]) == 1
"""


def test_a_whole_run_of_quality(tmp_path: Path, python: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SITTINGS, str(SCRIPT.parent), python],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("NMT_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    first, found = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("first.json", "all.json"))
    programs = found["programs"]
    assert list(first["programs"]) == ["nmt"]
    assert "nmt is measured already" in done.stderr
    assert programs["nmt"] == first["programs"]["nmt"]
    assert list(programs) == ["nmt", "nmt-default", "joeynmt", "opennmt-py"]
    assert "NMT_ONMT_PYTHON" in programs["opennmt-py"]["missing"]
    for name in ("nmt", "nmt-default", "joeynmt"):
        points = programs[name]["points"]
        # On a busy machine ours may have no time but for the last point.
        assert len(points) == 3 if name == "joeynmt" else points
        for before, after in itertools.pairwise(points):
            assert 0 < before["minutes"] < after["minutes"]
            assert 0 < before["update"] < after["update"]
        assert all(0 <= point["bleu"] <= 100 for point in points)
        assert programs[name]["cores_of_others"] is None or programs[name]["cores_of_others"] >= 0
    assert (tmp_path / "quality-over-time.png").read_bytes().startswith(b"\x89PNG")
    assert "| Joey NMT 9.8" in done.stdout
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "joeynmt.ckpt",
        "nmt-default.safetensors",
        "nmt.safetensors",
        "tokenizer.model",
    ]
    assert "## Start-up" in done.stdout
    assert "before it translates" not in done.stderr  # the model is there
    assert "settings.minutes was 0.03, and is 7.0 now" in done.stderr
