"""The benchmark: its arithmetic by hand and against torch's counter, the peers' logs, and a whole run of tiny sizes."""

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
from benchmarking import flops, numbers, peers, rounds, work
from benchmarking.flops import Product
from benchmarking.plain import Plain, train_plain
from benchmarking.settings import CURVES, MATCHED, QUICK, SEARCHES, WIRINGS, Json, Place, Sizes, overrides

from nmt import build, cli
from nmt.data.batches import EncodedPairs, Ragged, make_batch

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
    "none": ENCODER + 2 * 4 * 5 + WORDS + 2 * 3 * 4 * 15 + STATES + 2 * 3 * (4 + 5 + 3) * 14 + SOFTMAX,
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
    config = cli.compose("train", [*overrides(WIRINGS[name], sizes, 4, 80), "decoder.fast=false"])
    model = build.assemble(config, sizes.pieces, sizes.pieces, True).eval()
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
    assert 0 < work.rate(products, 0.002, place, torch.float32) < math.inf


def test_the_clock_stops_after_the_updates_that_were_ordered() -> None:
    source = Ragged([(np.full(13, 5, dtype=np.int32), np.array([0, 2, 5, 9, 13]))])
    target = Ragged([(np.full(9, 6, dtype=np.int32), np.array([0, 1, 3, 6, 9]))])
    answers: list[Json] = []

    def exchange(answer: Json) -> Json | None:
        answers.append(answer)
        return {"updates": 2} if len(answers) < 3 else None

    place = Place("cpu", "float32", 1)
    feed = work.Feed(EncodedPairs(source, target, np.arange(4), {}), exchange, place, tokens=100, sentences=2)
    with pytest.raises(work._Enough):
        train_plain(Plain(SIZES, 0.1), feed, place)
    assert [answer["updates"] for answer in answers] == [0, 2, 4]
    for answer in answers[1:]:  # two batches of two are an epoch
        assert answer["batches"] == 2
        assert sorted(answer["lengths"]) == [(3, 2), (4, 3), (5, 4), (5, 4)]  # with the ends
        assert answer["tokens"] == 13
        assert answer["seconds"] > 0


def test_lines_and_medians() -> None:
    assert numbers.line([1, 2, 4], [5, 7, 11]) == pytest.approx((3, 2, 1))
    assert numbers.line([0, 1, 2], [0, 1, 0]).r2 == pytest.approx(0)
    assert numbers.line([0, 1], [2, 2]) == (2, 0, 1)
    found = numbers.summary([{"x": 3.0}, {"x": 1.0}, {"x": 2.0}])
    assert found == {"x": 2.0, "spread": {"x": [1.0, 3.0]}, "rounds": 3}


# A peer's Python that says what the real ones say; the numbers are made up.
FAKE = """\
#!/bin/sh
''''exec '{python}' "$0" "$@" # '''
import sys, pathlib
words = sys.argv[1:]
if words[0] == "-c":
    print("version 9.8")
elif words[1:3] == ["joeynmt", "train"]:
    for step, rate in (2, 10), (4, 400), (6, 1200):
        print(f"2030-01-01 00:00:00,000 - INFO - joeynmt.training - Epoch   1, Step: {{step:8d}}, "
              f"Batch Loss: {{80.5:12.6f}}, Batch Acc: 0.100000, Tokens per Sec: {{rate:8.0f}}, Lr: 0.001000",
              file=sys.stderr)
elif words[1:3] == ["joeynmt", "test"]:
    lines = pathlib.Path("test.de").read_text(encoding="utf-8")
    pathlib.Path("joey.out.test").write_text(lines, encoding="utf-8")
    print("Generation took 0.1000[sec].\\nGeneration took 0.5000[sec].")
elif words[1] == "onmt.bin.train":
    for step, rate in (2, 10), (4, 600):
        print(f"[x INFO] Step {{step:2d}}/    6; acc: 1.0; ppl: 9.0; xent: 9.1; lr: 0.00100; sents:      16; "
              f"bsz:  123/ 119/ 8; {{rate + 50:3.0f}}/{{rate:3.0f}} tok/s;     20 sec;")
elif words[1] == "onmt.bin.translate":
    assert "onmt_model_step_6.pt" in words
    pathlib.Path("onmt.out").write_text("a\\nb\\n", encoding="utf-8")
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
        assert peer.train(6) == pytest.approx(trained)  # without the first report: 2 / (1 / 400 + 1 / 1200)
        done = peer.translate()
        assert done.sentences_per_second == pytest.approx(sentences)
        assert len(done.texts) == 2
        assert peer.peak_memory > 0


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
    ],
)
def test_mistakes_are_said_at_once(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(words) == 1
    assert said in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_case_that_cannot_be_measured_ends_with_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--quick", "--device", "cuda"]) == 1
    assert "no CUDA GPU" in capfd.readouterr().err


def test_the_leading_process_loads_no_torch() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import benchmark; "
        "print(sorted({'torch', 'numpy', 'matplotlib', 'sentencepiece'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
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
        timeout=300,
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
    for heading in ("## Training", "## Translating", "## Peers", "## Growth with beam size"):
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
    assert benchmark.options(benchmark.parser().parse_args([])).parts == list(rounds.PARTS)
