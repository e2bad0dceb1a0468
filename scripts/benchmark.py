"""Measure the speed of training and translating, compared with plain torch, Joey NMT, OpenNMT-py, eole and Marian.

    python scripts/benchmark.py [--json FILE] [--peers [NAME,...]] [--rounds N] [--only PART,...] [--quick] [--data DIR]

Prints tables: target tokens per second of complete training steps, for each wiring and for the Transformer, also with
torch's layers in the same loop; sentences per second in translating; memory. `benchmarking/` has the parts.

Translations of different lengths are different work, and hardly trained models translate too short or too long: give
enough --updates to make the lengths similar (the report warns).
"""

import argparse
import sys
from pathlib import Path

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking import report, rounds
from benchmarking.commands import Parser, add_common, check_places, count, select
from benchmarking.peers import NAMES, PEERS
from benchmarking.session import PARTS, Options
from benchmarking.settings import WIRINGS

from nmt.system.errors import UserError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = Parser(
        prog="benchmark.py", description="Measures training and translating; takes the machine for itself meanwhile."
    )
    say = result.add_argument
    say("--json", metavar="FILE", type=Path, help="keep everything that was measured in FILE")
    say("--rounds", metavar="N", type=count, help="how often everything is measured, in turn (5; 1 with --quick)")
    say("--only", metavar="PART,...", help=f"of {','.join(PARTS)} (all of them)")
    say("--device", metavar="DEVICE,...", default="cpu", help="cpu, cuda or cpu,cuda; a GPU in float32 and bf16 (cpu)")
    say("--precision", choices=("float32", "bf16"), default="float32", help="on the CPU (float32)")
    say("--batch", metavar="N", type=count, help="sentences a training batch (80; 512 on a GPU)")
    say("--updates", metavar="N", type=count, help="updates that a model has had before it translates (200)")
    say("--peers", metavar="NAME,...", nargs="?", const="", help=f"measure {','.join(NAMES)} too (all that are there)")
    say("--models", metavar="NAME,...", help=f"of {','.join(WIRINGS)} (all of them)")
    say("--compares", action="store_true", help="of ours only what the peers do: float32, beam 5, 64 at a time")
    say("--peer-updates", metavar="N", type=count, help="updates of a peer in a round (60)")
    add_common(result)
    return result


def options(arguments: argparse.Namespace) -> Options:
    """Check the arguments; return the options of the measurement (UserError for an unknown name or place)."""
    parts = select("--only", arguments.only, PARTS)
    devices = arguments.device.split(",")
    for device in devices:
        if device != "cpu" and device.partition(":")[0] != "cuda":
            raise UserError(f"--device {device} does not exist; give cpu, cuda, cuda:N or cpu,cuda.")
    check_places(
        {"--data": arguments.data, "--tokenizer": arguments.tokenizer},
        {"--json": arguments.json and arguments.json.absolute().parent},
    )
    paths = arguments.joey_python, arguments.onmt_python, arguments.eole_python, arguments.marian_python
    given = {name: value for name, value in vars(arguments).items() if name in Options.__dataclass_fields__}
    given["peers"] = [] if arguments.peers is None else select("--peers", arguments.peers, NAMES)
    given["models"] = select("--models", arguments.models, list(WIRINGS))
    for kind in PEERS if parts != ["transformer"] else ():
        if kind.name in given["peers"] and kind.beside not in given["models"]:
            raise UserError(f"--peers {kind.name} is compared with {kind.beside}. Add it to --models.")
    return Options(**given, parts=parts, devices=devices, pythons=tuple(zip(NAMES, paths, strict=True)))


def main(words: list[str]) -> int:
    """Measure and report; return the exit status, 1 for a UserError."""
    try:
        arguments = parser().parse_args(words)
        results = rounds.run(options(arguments))
        if arguments.json is not None:
            report.write_json(arguments.json, results)
        print(report.text(results), end="", flush=True)
    except UserError as error:
        print(f"benchmark.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmark.py: interrupted, nothing is kept.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
