"""The benchmark's part "exported": a trained Transformer translates beside its own export for CTranslate2."""

import contextlib
from pathlib import Path

from benchmarking.crew import Case
from benchmarking.numbers import summary
from benchmarking.session import Benchmark, say
from benchmarking.settings import Json

#: What translates: nmt, and CTranslate2 with weights of each type.
PROGRAMS = {"nmt": "nmt, float32", "float32": "CTranslate2, float32", "int8": "CTranslate2, int8"}


def measure(session: Benchmark, run: Path) -> Json:
    """The programs in turn, round after round, each in a process of its own, with beam 5 and 64 sentences a batch.

    Tokenising is included. `of_nmt` is nmt's speed over that of the program in the same round.
    """
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
    with contextlib.ExitStack() as stack:
        cases = {}
        for name in PROGRAMS:
            settings: Json = {
                "program": name,
                "run": run,
                "folder": session.folder / f"exported-{name}",
                "sentences": session.scale.translated[64],
                "threads": session.threads,
            }
            cases[name] = stack.enter_context(Case("exported", settings, session.log))
        for number in session.numbers():
            for name, case in cases.items():
                answer = case.ask(translate=True)
                speed = answer["sentences"] / answer["seconds"]
                rounds[name].append({"sentences_per_second": speed})
                rounds[name][-1]["of_nmt"] = rounds["nmt"][-1]["sentences_per_second"] / speed
                say(f"round {number}, translating, {PROGRAMS[name]}: {speed:,.1f} sentences/s")
        answers = {name: case.ask(texts=True) for name, case in cases.items()}
    return {
        name: {
            **summary(rounds[name]),
            "bleu": answers[name]["bleu"],
            "sentences": len(answers[name]["texts"]),
            "same": sum(map(str.__eq__, answers[name]["texts"], answers["nmt"]["texts"])),
        }
        for name in PROGRAMS
    }
