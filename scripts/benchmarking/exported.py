"""The benchmark's part "exported": a trained model translates beside its own export.

A Transformer is exported for CTranslate2, a recurrent model for ONNX Runtime, whose program translates line by line.
"""

import contextlib
from pathlib import Path

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from benchmarking.crew import Case
from benchmarking.numbers import summary
from benchmarking.session import Benchmark, say
from benchmarking.settings import Json
from nmt.errors import UserError

#: What translates, by the format: "nmt", nmt line by line ("alone"), and the export with weights of each type.
PROGRAMS = {
    "ctranslate2": {"nmt": "nmt, float32", "float32": "CTranslate2, float32", "int8": "CTranslate2, int8"},
    "onnx": {
        "nmt": "nmt, float32",
        "alone": "nmt, float32, line by line",
        "float32": "ONNX Runtime, float32, line by line",
        "int8": "ONNX Runtime, int8, line by line",
    },
}


def measure(session: Benchmark, run: Path) -> Json:
    """The programs in turn, round after round, each in a process of its own, with beam 5.

    A batch has 64 sentences, unless a program translates line by line. Tokenising is included. `of_nmt` is nmt's speed
    over that of the program in the same round.
    """
    format_of_export = _format(run)
    programs = PROGRAMS[format_of_export]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    with contextlib.ExitStack() as stack:
        cases = {}
        for name in programs:
            settings: Json = {
                "program": name,
                "format": format_of_export,
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
                say(f"round {number}, translating, {programs[name]}: {speed:,.1f} sentences/s")
        answers = {name: case.ask(texts=True) for name, case in cases.items()}
    return {
        name: {
            **summary(rounds[name]),
            "program": programs[name],
            "bleu": answers[name]["bleu"],
            "sentences": len(answers[name]["texts"]),
            "same": sum(map(str.__eq__, answers[name]["texts"], answers["nmt"]["texts"])),
        }
        for name in programs
    }


def _format(run: Path) -> str:
    """The format of a run's export, read without torch."""
    try:
        decoder = OmegaConf.select(OmegaConf.load(run / "config.yaml"), "choices.decoder", throw_on_missing=True)
    except (OSError, ValueError, OmegaConfBaseException) as error:
        raise UserError(f"--run {run} is not a run of nmt: {error}") from error
    return "ctranslate2" if decoder == "transformer" else "onnx"
