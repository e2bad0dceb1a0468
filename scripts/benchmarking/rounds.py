"""The leading process of the benchmark: cases take turns in rounds, so that other load affects all cases equally."""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarking import peers, translating
from benchmarking.crew import Case
from benchmarking.peers import OpenNMTTransformer, Peer
from benchmarking.session import Options, Session, attempt, beside, say, summary
from benchmarking.settings import PLAIN, TORCH_TRANSFORMER, TRANSFORMER, Json, Place, Sizes

#: Name of a case -> the figures of each round.
Rounds = dict[str, list[dict[str, float]]]


def run(options: Options) -> Json:
    """Make all requested measurements and return the results.

    Raises:
        UserError: a file or a device is missing, or a case died.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-benchmark-") as folder:
        session = Session(options, Path(folder))
        scale = session.scale
        results: Json = {
            "machine": session.machine,
            "corpus": session.corpus,
            "settings": {
                "model": session.sizes._asdict(),
                "batch": scale.batch,
                "precision": options.precision,
                "rounds": session.rounds,
                "updates_a_round": scale.updates,
                "updates_before_translating": scale.trained,
                "quick": options.quick,
            },
        }
        places = session.places()
        for place in places if {"training", "translating"} & {*options.parts} else ():
            measured = _measure(session, place)
            if place.device == "cpu":
                results.update(measured)
            else:
                results.setdefault("cuda", {})[place.precision] = measured
        if "transformer" in options.parts:
            results["transformer"] = _transformer(session, places[0])
        results["machine"]["load_after"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        return results


def _measure(session: Session, place: Place) -> Json:
    """Measure training and translating of nmt and of the peers in one place."""
    options = session.options
    say(f"On {place.device} in {place.precision}, {place.threads} CPU threads, {session.rounds} rounds.")
    usual = session.scale.batch if place.device == "cpu" or options.quick else 512
    batch = options.batch or usual
    theirs: list[Peer] = []
    outcomes: Json = {}
    wanted = [kind for kind in peers.PEERS if kind.name in options.peers]
    for kind in wanted if place.precision == "float32" else ():
        folder = f"{kind.name}-{place.device.replace(':', '')}"
        peer = session.peer(kind, folder, session.sizes, batch, place.device != "cpu")
        outcomes[kind.name] = {"missing": peer} if isinstance(peer, str) else {"version": peer.version}
        theirs += [] if isinstance(peer, str) else [peer]
    results: Json = {}
    training = _training(session, place, batch, theirs, outcomes)
    if "training" in options.parts:
        results["training"] = training
    if "translating" in options.parts:
        results["translating"] = translating.measure(session, place, theirs, outcomes)
    return {**results, "peers": outcomes} if options.peers else results


def _cases(
    stack: contextlib.ExitStack, session: Session, place: Place, sizes: Sizes, batch: int, names: Sequence[str]
) -> dict[str, Case]:
    """Start a case for each model."""
    shared: Json = {"scale": session.scale, "sizes": sizes, "place": place, "folder": session.data, "batch": batch}
    return {name: stack.enter_context(Case("training", {**shared, "wiring": name}, session.log)) for name in names}


def _in_turn(
    session: Session, place: Place, cases: Mapping[str, Case], theirs: Sequence[Peer], outcomes: Json
) -> tuple[Rounds, dict[str, Json], dict[str, list[float]]]:
    """Train in rounds; return the figures of each round, the last answers, and the speeds of the peers."""
    rounds: Rounds = {name: [] for name in cases}
    their_rounds: dict[str, list[float]] = {peer.name: [] for peer in theirs}
    answers: dict[str, Json] = {}
    updates = session.scale.updates if place.device == "cpu" else session.scale.gpu_updates
    for number in session.numbers():
        for name, case in cases.items():
            answers[name] = case.ask(updates=updates)
            rounds[name].append(_trained(answers[name]))
            speed = rounds[name][-1]["tokens_per_second"]
            say(f"round {number}, training, {name}: {speed:,.0f} target tokens/s")
        for peer in theirs:
            outcome, label = outcomes[peer.name], f"round {number}, training, {peer.name}"
            reached = attempt(outcome, label, "target tokens/s", peer.train, session.scale.peer_updates)
            their_rounds[peer.name] += reached
    return rounds, answers, their_rounds


def _trained(answer: Json) -> dict[str, float]:
    """The figures of a round of training, from the answer of its case."""
    return {
        "tokens_per_second": answer["tokens"] / answer["seconds"],
        "sentences_per_batch": answer["sentences"] / answer["batches"],
        "source_padding": answer["padding"][0],
        "target_padding": answer["padding"][1],
    }


def _training(session: Session, place: Place, batch: int, theirs: list[Peer], outcomes: Json) -> Json:
    """Train the wirings, with measurements if requested; then save weights for translating, after enough updates."""
    measured, scale = "training" in session.options.parts, session.scale
    on_gpu = place.device != "cpu"
    plain = on_gpu and measured and not session.options.compares
    names = [*session.options.models, *([PLAIN] if plain else [])]
    results: Json = {}
    with contextlib.ExitStack() as stack:
        cases = _cases(stack, session, place, session.sizes, batch, names)
        first = scale.gpu_warm_up if on_gpu else scale.warm_up
        answers = {name: case.ask(updates=first) for name, case in cases.items()}
        if measured:
            rounds, answers, their_rounds = _in_turn(session, place, cases, theirs, outcomes)
            for name in names:
                results[name] = {**summary(rounds[name]), "peak_memory_bytes": answers[name]["peak_memory"]}
                if on_gpu:
                    results[name]["peak_gpu_memory_bytes"] = answers[name]["gpu_memory"]
            for peer in theirs:
                ours = [entry["tokens_per_second"] for entry in rounds.get(peer.beside, [])]
                if their_rounds[peer.name]:
                    outcomes[peer.name]["training"] = beside(ours, their_rounds[peer.name], "tokens_per_second")
                    outcomes[peer.name]["peak_memory_bytes"] = peer.peak_memory
        for name in session.options.models if "translating" in session.options.parts else ():
            lacking = scale.trained - int(answers[name]["updates"])
            if lacking > 0:
                say(f"training {name} for {lacking} more updates before it translates")
                cases[name].ask(updates=lacking)
            cases[name].ask(save=session.weights(place, name))
    return results


def _transformer(session: Session, place: Place) -> Json:
    """Compare the Transformer with torch's layers in the same loop and with OpenNMT-py, by ratios in each round."""
    sizes, name = session.scale.transformer._replace(pieces=session.sizes.pieces), OpenNMTTransformer.name
    peer: Peer | str = ""
    if OpenNMTTransformer.name in session.options.peers:
        peer = session.peer(OpenNMTTransformer, "transformer", sizes, session.scale.batch)
    results: Json = {"sizes": sizes._asdict(), **({"missing": peer} if peer and isinstance(peer, str) else {})}
    with contextlib.ExitStack() as stack:
        models = (TRANSFORMER.name, TORCH_TRANSFORMER)
        cases = _cases(stack, session, place, sizes, session.scale.batch, models)
        for case in cases.values():
            case.ask(updates=session.scale.warm_up if place.device == "cpu" else session.scale.gpu_warm_up)
        theirs = [] if isinstance(peer, str) else [peer]
        rounds, answers, their_rounds = _in_turn(session, place, cases, theirs, {name: results})
    speeds = {model: [entry["tokens_per_second"] for entry in entries] for model, entries in rounds.items()}
    for model, model_speeds in speeds.items():
        ratio = beside(speeds[TRANSFORMER.name], model_speeds, "tokens_per_second")["ratio"]
        results[model] = {**summary(rounds[model]), "ratio": ratio, "peak_memory_bytes": answers[model]["peak_memory"]}
    if their_rounds.get(name):
        results[name] = beside(speeds[TRANSFORMER.name], their_rounds[name], "tokens_per_second")
    return results
