"""The leading process of the benchmark: cases in turn, round after round, so that what else runs falls on all alike."""

import contextlib
import os
import tempfile
from pathlib import Path

from benchmarking import peers, transformer, translating
from benchmarking.crew import Case
from benchmarking.numbers import beside, summary, trained
from benchmarking.peers import Peer, PeerError
from benchmarking.session import Benchmark, Options, say
from benchmarking.settings import PLAIN, WIRINGS, Json, Place


def run(options: Options) -> Json:
    """Measure everything that is asked for and return all of it.

    Raises:
        UserError: a file or a device is missing, or a case died.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-benchmark-") as folder:
        return _Rounds(options, Path(folder)).run()


class _Rounds(Benchmark):
    """One run of the benchmark."""

    def run(self) -> Json:
        """See `run`."""
        options = self.options
        results: Json = {
            "machine": self.machine,
            "corpus": self.corpus,
            "settings": {
                "model": self.sizes._asdict(),
                "batch": self.scale.batch,
                "precision": options.precision,
                "rounds": self.rounds,
                "updates_a_round": self.scale.updates,
                "updates_before_translating": self.scale.trained,
                "quick": options.quick,
            },
        }
        places = self.places()
        for place in places:
            measured = self._measure(place)
            if place.device == "cpu":
                results.update(measured)
            else:
                results.setdefault("cuda", {})[place.precision] = measured
        if "transformer" in options.parts:
            results["transformer"] = transformer.measure(self, places[0])
        results["machine"]["load_after"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        return results

    def _measure(self, place: Place) -> Json:
        """Training and translating in one place, the peers beside ours."""
        parts = self.options.parts
        if not {"training", "translating"} & {*parts}:
            return {}
        say(f"On {place.device} in {place.precision}, {place.threads} CPU threads, {self.rounds} rounds.")
        usual = self.scale.batch if place.device == "cpu" or self.options.quick else 512
        batch = self.options.batch or usual
        theirs: list[Peer] = []
        peer_results: Json = {}
        if self.options.peers and place.precision == "float32":
            theirs, peer_results = self._peers(place, batch)
        results: Json = {}
        training = self._training(place, batch, theirs, peer_results)
        if "training" in parts:
            results["training"] = training
        if "translating" in parts:
            results["translating"] = translating.measure(self, place, theirs, peer_results)
        if self.options.peers:
            results["peers"] = peer_results
        return results

    def _peers(self, place: Place, batch: int) -> tuple[list[Peer], Json]:
        """Those that are there, and a place for what they reach; or why they are not there."""
        theirs: list[Peer] = []
        peer_results: Json = {}
        for kind in peers.PEERS:
            cuda = place.device != "cpu"
            folder = self.folder / f"{kind.name}-{place.device.replace(':', '')}"
            peer = self.peer(kind, folder, batch, max(self.scale.translated.values()), cuda)
            if isinstance(peer, str):
                say(peer)
                peer_results[kind.name] = {"missing": peer}
            else:
                say(f"{kind.title} {peer.version} is measured too.")
                peer_results[kind.name] = {"version": peer.version}
                theirs.append(peer)
        return theirs, peer_results

    def _training(self, place: Place, batch: int, theirs: list[Peer], peer_results: Json) -> Json:
        """Train the wirings, measured where that is asked for, until they have their updates; keep the weights."""
        measured = "training" in self.options.parts
        names = [
            *WIRINGS,
            *([PLAIN] if place.device != "cpu" and measured else []),
        ]
        shared: Json = {
            "scale": self.scale,
            "sizes": self.sizes,
            "place": place,
            "folder": self.data,
            "batch": batch,
        }
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        their_rounds: dict[str, list[float]] = {peer.name: [] for peer in theirs}
        results: Json = {}
        with contextlib.ExitStack() as stack:
            cases = {
                name: stack.enter_context(Case("training", {**shared, "wiring": name}, self.log)) for name in names
            }
            first = self.scale.warm_up if place.device == "cpu" else self.scale.gpu_warm_up
            answers = {name: case.ask(updates=first) for name, case in cases.items()}
            for number in self.numbers() if measured else ():
                for name, case in cases.items():
                    answers[name] = case.ask(updates=self.scale.updates)
                    rounds[name].append(trained(answers[name]))
                    speed = rounds[name][-1]["tokens_per_second"]
                    say(f"round {number}, training, {name}: {speed:,.0f} target tokens/s")
                for peer in theirs:
                    self._train_peer(peer, number, their_rounds, peer_results)
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
                peer_results[peer.name]["training"] = beside(ours, their_rounds[peer.name], "tokens_per_second")
                peer_results[peer.name]["peak_memory_bytes"] = peer.peak_memory
        return results

    def _keep(self, place: Place, cases: dict[str, Case], answers: dict[str, Json]) -> None:
        """Train each wiring that is needed later for the updates that it lacks, and save its weights."""
        for name in WIRINGS if "translating" in self.options.parts else ():
            lacking = self.scale.trained - int(answers[name]["updates"])
            if lacking > 0:
                say(f"training {name} for {lacking} more updates before it translates")
                cases[name].ask(updates=lacking)
            cases[name].ask(save=self.weights(place, name))

    def _train_peer(self, peer: Peer, number: str, rounds: dict[str, list[float]], peer_results: Json) -> None:
        """A round of a peer's training; one that failed is left alone from then on."""
        if "failed" in peer_results[peer.name]:
            return
        try:
            rounds[peer.name].append(peer.train(self.scale.peer_updates))
            say(f"round {number}, training, {peer.name}: {rounds[peer.name][-1]:,.0f} target tokens/s")
        except PeerError as error:
            peer_results[peer.name]["failed"] = str(error)
            say(str(error))
