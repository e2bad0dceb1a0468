"""The part "translating" of the benchmark: all wirings, searches and batch sizes, and the peers."""

import contextlib

from benchmarking import crew
from benchmarking.crew import Case
from benchmarking.peers import Peer
from benchmarking.session import Session, attempt, beside, say, summary
from benchmarking.settings import FASTER, SEARCHES, Json, Place

#: Wiring, search, and sentences per batch.
Key = tuple[str, str, int]


def measure(session: Session, place: Place, theirs: list[Peer], outcomes: Json) -> Json:
    """Translate with all cases in rounds; return their figures. The figures of peers go into `outcomes`."""
    compares = session.options.compares
    amounts = {64: session.scale.translated[64]} if compares else session.scale.translated
    if not compares and place.device != "cpu":
        amounts = {**amounts, 512: amounts[64]}
    rounds: dict[Key, list[dict[str, float]]] = {}
    their_rounds: dict[str, list[float]] = {peer.name: [] for peer in theirs}
    texts: dict[str, list[str]] = {}
    answers: dict[Key, Json] = {}
    with contextlib.ExitStack() as stack:
        cases = {
            key: stack.enter_context(Case("translating", settings, session.log))
            for key, settings in _settings(session, place, list(amounts)).items()
        }
        for number in session.numbers():
            for key, case in cases.items():
                answers[key] = case.ask(sentences=amounts.get(key[2], amounts[64]))
                speed = answers[key]["sentences"] / answers[key]["seconds"]
                length = answers[key]["tokens"] / answers[key]["sentences"]
                figures = {"sentences_per_second": speed, "target_tokens_per_sentence": length}
                rounds.setdefault(key, []).append(figures)
                say(f"round {number}, translating, {key[0]} {key[1]} batch {key[2]}: {speed:,.1f} sentences/s")
            for peer in theirs:
                outcome, label = outcomes[peer.name], f"round {number}, translating, {peer.name} beam5"
                their_rounds[peer.name] += attempt(outcome, label, "sentences/s", _speed, session, peer, texts)
        scored = {key: case.ask(texts=True) for key, case in cases.items() if key[2] != 1}
    results: Json = {}
    for (name, search, batch), speeds in rounds.items():
        figures_here = results.setdefault(name, {}).setdefault(search, {"batches": {}})
        figures_here["batches"][str(batch)] = {
            **summary(speeds),
            "peak_memory_bytes": answers[name, search, batch]["peak_memory"],
            "sentences": int(answers[name, search, batch]["sentences"]),
        }
        if (name, search, batch) in scored:
            figures_here["batches"][str(batch)]["bleu"] = scored[name, search, batch]["bleu"]
        if batch == 64 or search in FASTER:
            figures_here |= figures_here["batches"][str(batch)]
    for peer in theirs:
        if their_rounds[peer.name]:
            settings = {"folder": session.data, "texts": texts[peer.name]}
            scores = crew.once("scoring", settings, session.log)
            outcomes[peer.name]["translating"] = _compared(peer, rounds, scored, their_rounds[peer.name], scores)
    return results


def _settings(session: Session, place: Place, batches: list[int]) -> dict[Key, Json]:
    """The settings of each case; on a CPU, also those of the faster variants of beam 5 that the processor supports."""
    shared: Json = {"scale": session.scale, "sizes": session.sizes, "place": place, "folder": session.data}
    settings: dict[Key, Json] = {
        (name, search, batch): {
            **shared,
            "weights": session.weights(place, name),
            "wiring": name,
            "search": search,
            "batch": batch,
            "shortlist": 0,
        }
        for name in session.options.models
        for search in (SEARCHES[-1:] if session.options.compares else SEARCHES)
        for batch in batches
    }
    faster = place.device == "cpu" and "bahdanau" in session.options.models and not session.options.compares
    for way, (precision, shortlist, batch) in FASTER.items() if faster else ():
        if precision != "float32" and not session.machine[precision]:
            continue
        changes = {"place": place._replace(precision=precision), "shortlist": shortlist, "batch": batch}
        settings["bahdanau", way, batch] = settings["bahdanau", "beam5", 64] | changes
    return settings


def _compared(
    peer: Peer,
    rounds: dict[Key, list[dict[str, float]]],
    scored: dict[Key, Json],
    their_rounds: list[float],
    scores: Json,
) -> Json:
    """The comparison of a peer with our beam 5, and with its faster variants."""
    compared = {}
    for name, way, batch in scored:
        if name == peer.beside and (way == "beam5" or way in FASTER):
            ours = [entry["sentences_per_second"] for entry in rounds[name, way, batch]]
            compared[way] = {
                **beside(ours, their_rounds, "sentences_per_second"),
                "bleu": scores["bleu"],
                "our_bleu": scored[name, way, batch]["bleu"],
            }
    beam = compared.pop("beam5", {})
    return {
        **beam,
        "faster": compared,
        "pieces_per_sentence": scores["pieces_per_sentence"],
        "our_pieces_per_sentence": scored[peer.beside, "beam5", 64]["pieces_per_sentence"],
    }


def _speed(session: Session, peer: Peer, texts: dict[str, list[str]]) -> float:
    """Sentences per second of a peer, after as many updates as our models; its translations go into `texts`."""
    if peer.updates != session.scale.trained:
        say(f"training {peer.name} for {session.scale.trained} updates before it translates")
        peer.train(session.scale.trained)
    done = peer.translate()
    texts[peer.name] = done.texts
    return done.sentences_per_second
