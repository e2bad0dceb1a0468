"""The Transformer's training beside torch's own layers in the same loop, and beside OpenNMT-py's, round after round."""

import contextlib

from benchmarking.crew import Case
from benchmarking.numbers import beside, summary, trained
from benchmarking.peers import OpenNMTTransformer, Peer, PeerError
from benchmarking.session import Benchmark, say
from benchmarking.settings import TORCH_TRANSFORMER, TRANSFORMER, Json, Place

NAMES = (TRANSFORMER.name, TORCH_TRANSFORMER)


def measure(session: Benchmark, place: Place) -> Json:
    """Target tokens a second of each, and how many times as fast ours is in each round."""
    scale = session.scale
    sizes = scale.transformer._replace(pieces=session.sizes.pieces)
    shared: Json = {
        "scale": scale,
        "sizes": sizes,
        "place": place,
        "folder": session.data,
        "batch": scale.batch,
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
    results: Json = {"sizes": sizes._asdict()}
    peer: Peer | None = None
    if session.options.peers:
        found = session.peer(OpenNMTTransformer, session.folder / "transformer", scale.batch, 1, sizes=sizes)
        if isinstance(found, Peer):
            peer = found
        else:
            say(found)
            results["missing"] = found
    their_rounds: list[float] = []
    with contextlib.ExitStack() as stack:
        cases = {name: stack.enter_context(Case("training", {**shared, "wiring": name}, session.log)) for name in NAMES}
        for case in cases.values():
            case.ask(updates=scale.warm_up)
        for number in session.numbers():
            for name, case in cases.items():
                answer = case.ask(updates=scale.updates)
                rounds[name].append(trained(answer))
                results[name] = {"peak_memory_bytes": answer["peak_memory"]}
                say(f"round {number}, {name}: {rounds[name][-1]['tokens_per_second']:,.0f} target tokens/s")
            if peer is not None:
                try:
                    their_rounds.append(peer.train(scale.peer_updates))
                    say(f"round {number}, {peer.name}: {their_rounds[-1]:,.0f} target tokens/s")
                except PeerError as error:
                    say(str(error))
                    results["failed"], peer = str(error), None
    ours = [entry["tokens_per_second"] for entry in rounds[TRANSFORMER.name]]
    for name in NAMES:
        theirs = [entry["tokens_per_second"] for entry in rounds[name]]
        results[name] |= {**summary(rounds[name]), "ratio": beside(ours, theirs, "tokens_per_second")["ratio"]}
    if their_rounds:
        results[OpenNMTTransformer.name] = beside(ours, their_rounds, "tokens_per_second")
    return results
