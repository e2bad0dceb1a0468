"""Measures how fast the models train and translate, how near that is to what the machine can do, and how cost grows.

    python scripts/benchmark.py [--json FILE] [--peers] [--rounds N] [--only PART,...] [--quick] [--data DIR]

Prints tables: target tokens a second in training, whole steps, for each wiring; the arithmetic a token, the rate of
matrix multiplies measured beside it and the fraction of that limit; sentences a second in translating; memory; the
time until `nmt.translate` has answered a line; growth with sentence length, beam, vocabulary and layers.
`benchmarking/` has the parts.

A hardly trained model says too little or too much, and its sentences a second mean little beside another's. Models
that have learned for the same time come from `quality_over_time.py --models DIR`; give DIR here too.
"""

import argparse
import sys
from pathlib import Path

# As a plain script from wherever it lies: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking import report, rounds
from benchmarking.commands import Parser, add_common, check_places, count, select
from benchmarking.session import PARTS, Options

from nmt.errors import UserError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = Parser(
        prog="benchmark.py", description="Measures training and translating; takes the machine for itself meanwhile."
    )
    say = result.add_argument
    say("--json", metavar="FILE", type=Path, help="keep everything that was measured in FILE")
    say(
        "--plot", metavar="DIR", type=Path, help="folder for the picture of the growth curves (docs; none with --quick)"
    )
    say("--rounds", metavar="N", type=count, help="how often everything is measured, in turn (5; 1 with --quick)")
    say("--only", metavar="PART,...", help=f"of {','.join(PARTS)} (all of them)")
    say("--device", metavar="DEVICE,...", default="cpu", help="cpu, cuda or cpu,cuda; a GPU in float32 and bf16 (cpu)")
    say("--precision", choices=("float32", "bf16"), default="float32", help="on the CPU (float32)")
    say("--batch", metavar="N", type=count, help="sentences a training batch (80; 512 on a GPU)")
    say("--updates", metavar="N", type=count, help="updates that a model has had before it translates (200)")
    say(
        "--models",
        metavar="DIR",
        type=Path,
        help="what quality_over_time.py --models DIR kept: bahdanau and the peers translate with these, trained for "
        "the same time, and with their tokenizer",
    )
    say(
        "--run",
        metavar="DIR",
        type=Path,
        help="a trained run, which translates beside its export for CTranslate2 or ONNX Runtime (exported)",
    )
    say("--peers", action="store_true", help="measure Joey NMT and OpenNMT-py too, where they are")
    say("--peer-updates", metavar="N", type=count, help="updates of a peer in a round (60)")
    add_common(result)
    return result


def options(arguments: argparse.Namespace) -> Options:
    """What to measure (UserError for what does not exist)."""
    parts = select("--only", arguments.only, PARTS)
    devices = arguments.device.split(",")
    for device in devices:
        if device != "cpu" and device.partition(":")[0] != "cuda":
            raise UserError(f"--device {device} does not exist; give cpu, cuda, cuda:N or cpu,cuda.")
    models, tokenizer = arguments.models, arguments.tokenizer
    if models is not None:
        if tokenizer is not None:
            raise UserError("--models has a tokenizer of its own. Leave --tokenizer out.")
        tokenizer = str(models / "tokenizer.model")
        check_places({"--models": models / "nmt.safetensors"}, {})
    if "exported" in parts and arguments.run is None and arguments.only is not None:
        raise UserError("--only exported needs --run DIR, a trained run.")
    check_places(
        {"--run": arguments.run, "--data": arguments.data, "--models" if models else "--tokenizer": tokenizer},
        {"--json": arguments.json and arguments.json.absolute().parent, "--plot": arguments.plot},
    )
    return Options(
        parts=parts,
        devices=devices,
        precision=arguments.precision,
        rounds=arguments.rounds,
        quick=arguments.quick,
        data=arguments.data,
        tokenizer=tokenizer,
        threads=arguments.threads,
        batch=arguments.batch,
        updates=arguments.updates,
        models=models,
        peers=arguments.peers,
        peer_updates=arguments.peer_updates,
        run=arguments.run,
        pythons=(("joeynmt", arguments.joey_python), ("opennmt-py", arguments.onmt_python)),
    )


def main(words: list[str]) -> int:
    """Measure and report; return the exit status, 1 for a mistake of the user's."""
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
