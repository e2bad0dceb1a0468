"""Measures how fast the models train and translate, how near that is to what the machine can do, and how cost grows.

    python scripts/benchmark.py [--json FILE] [--peers] [--rounds N] [--only PART,...] [--quick] [--data DIR]

Prints tables: target tokens a second in training, whole steps, for each wiring; the arithmetic a token, the rate of
matrix multiplies measured beside it and the fraction of that limit; sentences a second in translating; memory; growth
with sentence length, beam, vocabulary and layers. `benchmarking/` has the parts.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

# As a plain script from wherever it lies: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking import report, rounds

from nmt.errors import UserError, nearest


class _Parser(argparse.ArgumentParser):
    """Mistakes on the command line are the user's like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message[:1].upper()}{message[1:]}. {self.prog} --help says what there is.")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = _Parser(
        prog="benchmark.py", description="Measures training and translating; takes the machine for itself meanwhile."
    )
    say = made.add_argument
    say("--json", metavar="FILE", type=Path, help="keep everything that was measured in FILE")
    say(
        "--plot", metavar="DIR", type=Path, help="folder for the picture of the growth curves (docs; none with --quick)"
    )
    say("--rounds", metavar="N", type=_count, help="how often everything is measured, in turn (5; 1 with --quick)")
    say("--only", metavar="PART,...", help=f"of {','.join(rounds.PARTS)} (all of them)")
    say("--quick", action="store_true", help="tiny sizes, only to see that all of it works")
    say("--data", metavar="DIR", help="folder with Multi30k ($NMT_DATA/multi30k; else the built-in corpus)")
    say("--tokenizer", metavar="FILE", help="SentencePiece model for both languages (else one is trained)")
    say("--threads", metavar="N", type=_count, help="CPU threads, everybody's (torch's choice)")
    say("--device", metavar="DEVICE,...", default="cpu", help="cpu, cuda or cpu,cuda; a GPU in float32 and bf16 (cpu)")
    say("--updates", metavar="N", type=_count, help="updates that a model has had before it translates (200)")
    say("--peers", action="store_true", help="measure Joey NMT and OpenNMT-py too, where they are")
    say("--peer-updates", metavar="N", type=_count, help="updates of a peer in a round (60)")
    say("--joey-python", metavar="PYTHON", help="of Joey NMT's virtual environment ($NMT_JOEY_PYTHON)")
    say("--onmt-python", metavar="PYTHON", help="of OpenNMT-py's virtual environment ($NMT_ONMT_PYTHON)")
    return made


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise ValueError(word)
    return number


def _writable(folder: Path) -> bool:
    """Whether files can be put into the folder, which is made: better known before than after measuring."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def options(arguments: argparse.Namespace) -> rounds.Options:
    """What to measure (UserError for what does not exist)."""
    parts = arguments.only.split(",") if arguments.only else list(rounds.PARTS)
    for part in parts:
        if part not in rounds.PARTS:
            raise UserError(
                f"--only {part} does not exist; choose of {', '.join(rounds.PARTS)}.{nearest(part, rounds.PARTS)}"
            )
    devices = arguments.device.split(",")
    for device in devices:
        if device != "cpu" and device.partition(":")[0] != "cuda":
            raise UserError(f"--device {device} does not exist; give cpu, cuda, cuda:N or cpu,cuda.")
    for option, path in (("--data", arguments.data), ("--tokenizer", arguments.tokenizer)):
        if path is not None and not os.path.exists(path):
            raise UserError(f"{option} {path} is not there.")
    for option, folder in (("--json", arguments.json and arguments.json.absolute().parent), ("--plot", arguments.plot)):
        if folder is not None and not _writable(folder):
            raise UserError(f"{option}: {folder} cannot be written. Give another place.")
    return rounds.Options(
        parts=parts,
        devices=devices,
        rounds=arguments.rounds,
        quick=arguments.quick,
        data=arguments.data,
        tokenizer=arguments.tokenizer,
        threads=arguments.threads,
        updates=arguments.updates,
        peers=arguments.peers,
        peer_updates=arguments.peer_updates,
        pythons=(("joeynmt", arguments.joey_python), ("opennmt-py", arguments.onmt_python)),
    )


def main(words: list[str]) -> int:
    """Measures and reports; returns the exit status, 1 for a mistake of the user's."""
    try:
        arguments = parser().parse_args(words)
        results = rounds.run(options(arguments))
        if arguments.json is not None:
            report.write_json(arguments.json, results)
        print(report.text(results), end="", flush=True)
        folder = arguments.plot or (None if arguments.quick else Path("docs"))
        if folder is not None and "growth" in results:
            print(f"Growth curves: {report.plot(results['growth'], folder)}", file=sys.stderr)
    except UserError as error:
        print(f"benchmark.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmark.py: interrupted, nothing is kept.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
