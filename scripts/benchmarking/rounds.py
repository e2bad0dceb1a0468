"""The leading process: cases in turn, round after round, so that what the machine does beside falls on all alike."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking import crew, flops, peers
from benchmarking.crew import Case
from benchmarking.numbers import fit, spread, summary
from benchmarking.peers import Peer, PeerError, Task
from benchmarking.settings import (
    AXES,
    CURVES,
    FASTER,
    MATCHED,
    PLAIN,
    QUICK,
    SEARCHES,
    WIRINGS,
    Growth,
    Json,
    Place,
    Sizes,
)
from nmt.errors import UserError

PARTS = ("training", "translating", "startup", "growth")


@dataclass(frozen=True)
class Options:
    """What the command line asks for; None leaves the choice to the benchmark.

    Attributes:
        parts: of `PARTS`.
        devices: cpu, cuda or cuda:N.
        rounds: how often everything is measured.
        quick: tiny sizes.
        data: folder with Multi30k.
        tokenizer: SentencePiece model.
        threads: CPU threads.
        updates: that a model has had before it translates.
        models: a folder with models of `bahdanau` and the peers to translate with; None trains them for `updates`.
        peers: whether other programs are measured too.
        peer_updates: of a peer, in a round.
        pythons: of the peers' environments, by the peer's name.
    """

    parts: Sequence[str] = PARTS
    devices: Sequence[str] = ("cpu",)
    rounds: int | None = None
    quick: bool = False
    data: str | None = None
    tokenizer: str | None = None
    threads: int | None = None
    updates: int | None = None
    models: Path | None = None
    peers: bool = False
    peer_updates: int | None = None
    pythons: tuple[tuple[str, str | None], ...] = ()


def run(options: Options) -> Json:
    """Measures everything that is asked for and returns all of it.

    Raises:
        UserError: a file or a device is missing, or a case died.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-benchmark-") as folder:
        return _Session(options, Path(folder)).run()


def say(text: str) -> None:
    """Shows how far it is, on standard error."""
    print(text, file=sys.stderr, flush=True)


class _Session:
    """One run of the benchmark."""

    def __init__(self, options: Options, folder: Path) -> None:
        scale = QUICK if options.quick else MATCHED
        scale = replace(
            scale,
            trained=scale.trained if options.updates is None else options.updates,
            peer_updates=scale.peer_updates if options.peer_updates is None else options.peer_updates,
        )
        self.options, self.folder, self.scale = options, folder, scale
        self.rounds = options.rounds or (1 if options.quick else 5)
        self.data, self.log = folder / "corpus", folder / "said.txt"
        self.data.mkdir()
        self.log.touch()

    def run(self) -> Json:
        """See `run`."""
        options = self.options
        facts = crew.once(
            "prepare",
            {
                "devices": list(options.devices),
                "threads": options.threads,
                "folder": self.data,
                "data": options.data,
                "tokenizer": options.tokenizer,
                "scale": self.scale,
            },
            self.log,
        )
        self.corpus: Json = facts["corpus"]
        self.sizes = self.scale.sizes._replace(pieces=self.corpus["pieces"])
        self.threads = int(facts["machine"]["threads"])
        for note in self.corpus["notes"]:
            say(note)
        results: Json = {
            "machine": facts["machine"],
            "corpus": self.corpus,
            "settings": {
                "model": self.sizes._asdict(),
                "batch": self.scale.batch,
                "rounds": self.rounds,
                "updates_a_round": self.scale.updates,
                "updates_before_translating": self.scale.trained,
                "models": None if options.models is None else str(options.models),
                "quick": options.quick,
            },
        }
        for place in self._places():
            measured = self._measure(place)
            if place.device == "cpu":
                results.update(measured)
            else:
                results.setdefault("cuda", {})[place.precision] = measured
        if "startup" in options.parts:
            results["startup"] = self._startup(self._weights(self._places()[0], "bahdanau"))
        if "growth" in options.parts:
            results["growth"] = self._growth(self._places()[0])
        results["machine"]["load_after"] = crew.load()
        return results

    def _places(self) -> list[Place]:
        places = []
        for device in self.options.devices:
            kinds = ("float32",) if device == "cpu" else ("float32", "bf16")
            places += [Place(device, precision, self.threads) for precision in kinds]
        return places

    def _measure(self, place: Place) -> Json:
        """Training and translating in one place, the peers beside ours."""
        parts = self.options.parts
        if not {"training", "translating"} & {*parts} and not self._kept_here(place):
            return {}
        say(f"On {place.device} in {place.precision}, {place.threads} CPU threads, {self.rounds} rounds.")
        batch = self.scale.batch if place.device == "cpu" or self.options.quick else 512
        theirs: list[Peer] = []
        found: Json = {}
        if self.options.peers and place.precision == "float32":
            theirs, found = self._peers(place, batch)
        results: Json = {}
        training = self._training(place, batch, theirs, found)
        if "training" in parts:
            results["training"] = training
        if "translating" in parts:
            results["translating"] = self._translating(place, theirs, found)
        if self.options.peers:
            results["peers"] = found
        return results

    def _kept_here(self, place: Place) -> list[str]:
        """The wirings whose weights are wanted after training in this place, the given models left out."""
        names: list[str] = []
        if "translating" in self.options.parts:
            names = list(WIRINGS)
        elif "startup" in self.options.parts and place == self._places()[0]:
            names = ["bahdanau"]
        return [name for name in names if name != "bahdanau" or self.options.models is None]

    def _weights(self, place: Place, name: str) -> Path:
        """The trained weights of a wiring."""
        if name == "bahdanau" and self.options.models is not None:
            return self.options.models / "nmt.safetensors"
        return self.folder / f"{name}-{place.precision}-{place.device.replace(':', '')}.safetensors"

    def _peers(self, place: Place, batch: int) -> tuple[list[Peer], Json]:
        """Those that are there, and a place for what they reach; or why they are not there."""
        theirs: list[Peer] = []
        found: Json = {}
        for kind in peers.PEERS:
            task = Task(
                self.data,
                self.folder / f"{kind.name}-{place.device.replace(':', '')}",
                (self.corpus["languages"][0], self.corpus["languages"][1]),
                self.sizes,
                batch,
                self.scale.longest,
                place.threads,
                place.device != "cpu",
                max(self.scale.translated.values()),
            )
            peer = peers.find(kind, dict(self.options.pythons).get(kind.name), task)
            if isinstance(peer, str):
                say(peer)
                found[kind.name] = {"missing": peer}
            else:
                say(f"{kind.title} {peer.version} is measured too.")
                found[kind.name] = {"version": peer.version}
                theirs.append(peer)
        return theirs, found

    def _training(self, place: Place, batch: int, theirs: list[Peer], found: Json) -> Json:
        """Trains the wirings, measured where that is asked for, until they have their updates; keeps the weights."""
        measured = "training" in self.options.parts
        names = [
            *(WIRINGS if measured else self._kept_here(place)),
            *([PLAIN] if place.device != "cpu" and measured else []),
        ]
        shared: Json = {
            "scale": self.scale,
            "sizes": self.sizes,
            "place": place,
            "folder": self.data,
            "batch": batch,
            "lengths": (self.corpus["source_tokens"], self.corpus["target_tokens"]),
        }
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        their_rounds: dict[str, list[float]] = {peer.name: [] for peer in theirs}
        results: Json = {}
        with contextlib.ExitStack() as stack:
            cases = {
                name: stack.enter_context(Case("training", {**shared, "wiring": name}, self.log)) for name in names
            }
            if measured:
                multiplying = stack.enter_context(Case("multiplying", shared, self.log))
            answers = {name: case.ask(updates=self.scale.warm_up) for name, case in cases.items()}
            for number in self._rounds(measured):
                for name, case in cases.items():
                    answers[name] = case.ask(updates=self.scale.updates)
                    rate = 0.0
                    if name in WIRINGS:
                        rate = multiplying.ask(wiring=name, seconds=self.scale.rate_seconds)["rate"]
                    rounds[name].append(self._trained(name, answers[name], rate))
                    speed = rounds[name][-1]["tokens_per_second"]
                    say(f"round {number}, training, {name}: {speed:,.0f} target tokens/s")
                for peer in theirs:
                    self._train_peer(peer, number, their_rounds, found)
            for name in names if measured else ():
                results[name] = {
                    **summary(rounds[name]),
                    "peak_memory_bytes": answers[name]["peak_memory"],
                    **({"peak_gpu_memory_bytes": answers[name]["gpu_memory"]} if place.device != "cpu" else {}),
                }
            self._keep(place, cases, answers)
        for name in WIRINGS if measured and PLAIN in names else ():
            results[name]["fraction_of_cudnn"] = (
                results[name]["tokens_per_second"] / results[PLAIN]["tokens_per_second"]
            )
        ours = [entry["tokens_per_second"] for entry in rounds.get("bahdanau", [])]
        for peer in theirs:
            if their_rounds[peer.name]:
                found[peer.name]["training"] = _beside(ours, their_rounds[peer.name], "tokens_per_second")
                found[peer.name]["peak_memory_bytes"] = peer.peak_memory
        return results

    def _keep(self, place: Place, cases: dict[str, Case], answers: dict[str, Json]) -> None:
        """Gives each wiring that is wanted later the updates that it lacks, and keeps its weights."""
        for name in self._kept_here(place):
            lacking = self.scale.trained - int(answers[name]["updates"])
            if lacking > 0:
                say(f"training {name} for {lacking} more updates before it translates")
                cases[name].ask(updates=lacking)
            cases[name].ask(save=self._weights(place, name))

    def _rounds(self, measured: bool = True) -> Iterator[str]:
        """As the user sees them: 1 of 5, 2 of 5 ..."""
        for number in range(self.rounds if measured else 0):
            yield f"{number + 1} of {self.rounds}"

    def _trained(self, name: str, answer: Json, rate: float) -> dict[str, float]:
        """The figures of one round of training."""
        figures = {
            "tokens_per_second": answer["tokens"] / answer["seconds"],
            "sentences_per_batch": answer["sentences"] / answer["batches"],
            "source_padding": answer["padding"][0],
            "target_padding": answer["padding"][1],
        }
        if name in WIRINGS:
            needed = flops.total(self.sizes, WIRINGS[name], map(tuple, answer["lengths"])) / answer["tokens"]
            figures["flops_per_token"] = needed
            figures["flops_per_second"] = needed * figures["tokens_per_second"]
            figures["multiply_rate"] = rate
            figures["limit_tokens_per_second"] = rate / needed
            figures["fraction_of_limit"] = figures["flops_per_second"] / rate
        return figures

    def _train_peer(self, peer: Peer, number: str, rounds: dict[str, list[float]], found: Json) -> None:
        """A round of a peer's training; one that failed is left alone from then on."""
        if "failed" in found[peer.name]:
            return
        try:
            rounds[peer.name].append(peer.train(self.scale.peer_updates))
            say(f"round {number}, training, {peer.name}: {rounds[peer.name][-1]:,.0f} target tokens/s")
        except PeerError as error:
            found[peer.name]["failed"] = str(error)
            say(str(error))

    def _translating(self, place: Place, theirs: list[Peer], found: Json) -> Json:
        """Translates with every wiring, search and batch size."""
        amounts = self.scale.translated
        if place.device != "cpu":
            amounts = {**amounts, 512: amounts[64]}
        shared: Json = {"scale": self.scale, "sizes": self.sizes, "place": place, "folder": self.data}
        rounds: dict[tuple[str, str, int], list[dict[str, float]]] = {}
        their_rounds: dict[str, list[float]] = {peer.name: [] for peer in theirs}
        texts: dict[str, list[str]] = {}
        faster = FASTER if place.device == "cpu" else {}
        asked = {
            (name, search, batch): {"wiring": name, "search": search, "batch": batch, "shortlist": 0}
            for name in WIRINGS
            for search in SEARCHES
            for batch in amounts
        }
        for way, (precision, shortlist) in faster.items():
            asked["bahdanau", way, 64] = {
                **asked["bahdanau", "beam5", 64],
                "place": place._replace(precision=precision),
                "shortlist": shortlist,
            }
        with contextlib.ExitStack() as stack:
            cases = {
                key: stack.enter_context(
                    Case("translating", {**shared, "weights": self._weights(place, key[0]), **own}, self.log)
                )
                for key, own in asked.items()
            }
            answers: dict[tuple[str, str, int], Json] = {}
            for number in self._rounds():
                for key, case in cases.items():
                    answers[key] = case.ask(sentences=amounts[key[2]])
                    rounds.setdefault(key, []).append(
                        {
                            "sentences_per_second": answers[key]["sentences"] / answers[key]["seconds"],
                            "target_tokens_per_sentence": answers[key]["tokens"] / answers[key]["sentences"],
                        }
                    )
                    speed = rounds[key][-1]["sentences_per_second"]
                    say(f"round {number}, translating, {key[0]} {key[1]} batch {key[2]}: {speed:,.1f} sentences/s")
                for peer in theirs:
                    self._translate_peer(peer, number, their_rounds, texts, found)
            scored = {key: case.ask(texts=True) for key, case in cases.items() if key[2] == 64}
        results: Json = {}
        for (name, search, batch), own in rounds.items():
            found_here = results.setdefault(name, {}).setdefault(search, {"batches": {}})
            found_here["batches"][str(batch)] = {
                **summary(own),
                "peak_memory_bytes": answers[name, search, batch]["peak_memory"],
                "sentences": int(answers[name, search, batch]["sentences"]),
            }
            if batch == 64:
                found_here |= {**found_here["batches"]["64"], "bleu": scored[name, search, 64]["bleu"]}
        ours = {
            way: [entry["sentences_per_second"] for entry in rounds["bahdanau", way, 64]] for way in ("beam5", *faster)
        }
        our_length = scored["bahdanau", "beam5", 64]["pieces_per_sentence"]
        for peer in theirs:
            if their_rounds[peer.name]:
                settings = {"folder": self.data, "split": "test", "texts": texts[peer.name]}
                scores = crew.once("scoring", settings, self.log)
                found[peer.name]["translating"] = {
                    **_beside(ours["beam5"], their_rounds[peer.name], "sentences_per_second"),
                    "faster": {
                        way: {
                            **_beside(ours[way], their_rounds[peer.name], "sentences_per_second"),
                            "bleu": scores["bleu"],
                            "our_bleu": scored["bahdanau", way, 64]["bleu"],
                        }
                        for way in faster
                    },
                    "bleu": scores["bleu"],
                    "pieces_per_sentence": scores["pieces_per_sentence"],
                    "our_bleu": scored["bahdanau", "beam5", 64]["bleu"],
                    "our_pieces_per_sentence": our_length,
                }
        return results

    def _translate_peer(
        self, peer: Peer, number: str, rounds: dict[str, list[float]], texts: dict[str, list[str]], found: Json
    ) -> None:
        """A round of a peer's translating, with a model that has had as many updates, or as much time, as ours."""
        if "failed" in found[peer.name]:
            return
        try:
            if self.options.models is not None:
                done = peer.translate(peer.kept_in(self.options.models))
            else:
                if peer.updates != self.scale.trained:
                    say(f"training {peer.name} for {self.scale.trained} updates before it translates")
                    peer.train(self.scale.trained)
                done = peer.translate()
            rounds[peer.name].append(done.sentences_per_second)
            texts[peer.name] = done.texts
            say(f"round {number}, translating, {peer.name} beam5: {done.sentences_per_second:,.1f} sentences/s")
        except PeerError as error:
            found[peer.name]["failed"] = str(error)
            say(str(error))

    def _startup(self, weights: Path) -> Json:
        """How long `nmt.translate` takes to answer a line, beside importing torch and reading the model's weights."""
        run = self.folder / "run"
        settings = {"scale": self.scale, "sizes": self.sizes, "folder": self.data, "weights": weights, "run": run}
        crew.once("founding", settings, self.log)
        reading = (
            "import sys, time, torch, safetensors.torch; began = time.perf_counter(); "
            "safetensors.torch.load_file(sys.argv[1]); print(time.perf_counter() - began)"
        )
        verb = ["-m", "nmt.translate", f"run={run}", "device=cpu", f"threads={self.threads}"]
        rounds: list[dict[str, float]] = []
        warm_up = () if self.options.quick else ("to warm up",)
        for number in (*warm_up, *self._rounds()):
            imported, _ = self._python("-c", "import torch")
            read = float(self._python("-c", reading, str(run / "best.safetensors"))[1])
            answered, answer = self._python(*verb)
            if len(answer.splitlines()) != 1:
                raise RuntimeError(f"nmt.translate answered one line with {answer!r}")
            rounds.append(
                {
                    "answer_seconds": answered,
                    "import_torch_seconds": imported,
                    "read_model_seconds": read,
                    "ratio": answered / (imported + read),
                }
            )
            say(f"round {number}, start-up: {answered:.2f} s to answer a line, {imported + read:.2f} s at the least")
        return summary(rounds[len(warm_up) :])

    def _python(self, *words: str) -> tuple[float, str]:
        """Seconds that a process of this Python took, given the first line of the test set, and what it printed."""
        language = self.corpus["languages"][0]
        line = (self.data / f"test.{language}").read_bytes().split(b"\n")[0] + b"\n"
        path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, input=line, capture_output=True, check=False
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise UserError(f"{' '.join(words[:2])} ended with status {done.returncode}: {said}")
        return seconds, done.stdout.decode()

    def _growth(self, place: Place) -> Json:
        """Every curve of `CURVES`, by axis."""
        rounds: dict[tuple[Growth, int], list[float]] = {}
        with Case("growing", {"place": place, "folder": self.data}, self.log) as case:
            for number in self._rounds():
                for curve in CURVES:
                    for value in self.scale.growth[curve.axis]:
                        order = self._point(curve, value)
                        seconds = case.ask(**order)["seconds"]
                        units = order["sentences"] * (order["length"] if curve.unit == "token" else 1)
                        rounds.setdefault((curve, value), []).append(1000 * seconds / units)
                    say(f"round {number}, growth, {curve.work} {curve.wiring} by {curve.axis}")
        results: Json = {axis: [] for axis in AXES}
        for curve in CURVES:
            values = list(self.scale.growth[curve.axis])
            points = [rounds[curve, value] for value in values]
            medians = [summary([{"median": own} for own in point])["median"] for point in points]
            results[curve.axis].append(
                {
                    **curve._asdict(),
                    "unit": f"ms a {curve.unit}",
                    "values": values,
                    "median": medians,
                    "spread": [spread(point) for point in points],
                    **fit(values, medians, curve.degree)._asdict(),
                }
            )
        return results

    def _point(self, curve: Growth, value: int) -> Json:
        """The order for one point of a curve."""
        sizes: Sizes = self.scale.sizes
        if curve.axis == "vocabulary":
            sizes = sizes._replace(pieces=value)
        elif curve.axis == "layers":
            sizes = sizes._replace(layers=value)
        return {
            "work": curve.work,
            "wiring": curve.wiring,
            "sizes": sizes,
            "length": value if curve.axis == "sentence_length" else self.scale.growth_length,
            "sentences": self.scale.growth_sentences[curve.axis],
            "beam": value if curve.axis == "beam" else 5,
            "repeats": self.scale.growth_updates,
        }


def _beside(ours: Sequence[float], theirs: Sequence[float], unit: str) -> Json:
    """A peer's rounds beside ours: medians, spreads, and how many times as fast we are."""
    pairs = list(zip(ours, theirs, strict=False))
    return {
        **summary([{unit: own} for own in theirs]),
        **({"ratio": summary([{"ours_over_theirs": own / their} for own, their in pairs])} if pairs else {}),
    }
