"""Measures how good translations are after so many minutes of training: ours beside Joey NMT and OpenNMT-py.

    python scripts/quality_over_time.py [--minutes N] [--json FILE] [--models DIR] [--only PROGRAM,...] [--quick]

One program after the other, alone on the machine and on all its cores, learns from the same text in the same pieces for
so many minutes; then what it kept on the way translates the validation set. Leave the machine alone meanwhile: with 40
minutes and 20 points it takes about four hours. With --json each program is kept as soon as it is done, and the same
command goes on with those that are not.

Programs, all in float32 unless --precision says otherwise for ours:

- `nmt`: the matched model (embeddings and the encoder's directions 256, decoder and additive attention 512, dropout
  0.3, label smoothing 0.1, 80 sentences a batch), trained as `configs/` trains everything: AdamW with a cosine over the
  minutes, an average of the weights.
- `nmt-default`: what `configs/` has for the corpus (`experiment=multi30k`, or the built-in corpus's), model and batches
  too, on the same pieces.
- `joeynmt`: the matched model with its own recipe, AdamW 0.001 that falls by 2 % an epoch.
- `opennmt-py`: the matched model with Adam 0.001, halved five times in the last two fifths of its updates. How many
  updates that is comes from a few that are tried first, for it has to be known beforehand.

The clock is the same for all: seconds of wall time in the training loop. It starts when the loop begins, after models,
text and vocabulary are loaded; making batches, and cutting text into pieces where a program does that in its loop
(OpenNMT-py, and our subword sampling), is training. Where weights are kept it stands still, from the end of the last
update before to the beginning of the next one after, so that validating, saving and logging cost nobody anything. No
program validates otherwise; translating comes after training. Ours is taken inside the loop, the peers' from the times
in their logs and of their files.

All translate with beam 5 and score with sacreBLEU, 13a, cased, on detokenised text.
"""

import argparse
import contextlib
import sys
from pathlib import Path

# As a plain script from wherever it lies: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking import quality, report
from benchmarking.commands import Parser, add_common, check_places, count, select

from nmt.errors import UserError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = Parser(
        prog="quality_over_time.py",
        description="Measures validation BLEU against minutes of training; takes the machine for itself meanwhile.",
    )
    say = result.add_argument
    say("--json", metavar="FILE", type=Path, help="keep results in FILE after each program; go on with what is there")
    say("--plot", metavar="DIR", type=Path, help="folder for the picture of the curves (docs; none with --quick)")
    say("--minutes", metavar="N", type=_minutes, help="of training, a program (40)")
    say("--points", metavar="N", type=count, help="how often the weights are kept meanwhile (20)")
    say("--only", metavar="PROGRAM,...", help=f"of {','.join(quality.PROGRAMS)} (all of them)")
    say("--precision", metavar="NAME,...", help="our own models' float32, bf16 or float32,bf16 (float32)")
    say("--models", metavar="DIR", type=Path, help="keep each program's last model in DIR, for benchmark.py --models")
    add_common(result)
    return result


def _minutes(word: str) -> float:
    """A number above 0 (ArgumentTypeError for anything else)."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(word)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{word} is not a number above 0")


def options(arguments: argparse.Namespace) -> quality.Options:
    """What to measure (UserError for what does not exist)."""
    check_places(
        {"--data": arguments.data, "--tokenizer": arguments.tokenizer},
        {
            "--json": arguments.json and arguments.json.absolute().parent,
            "--plot": arguments.plot,
            "--models": arguments.models,
        },
    )
    return quality.Options(
        minutes=arguments.minutes,
        points=arguments.points,
        programs=select("--only", arguments.only, quality.PROGRAMS),
        precisions=select("--precision", arguments.precision or "float32", quality.PRECISIONS),
        quick=arguments.quick,
        data=arguments.data,
        tokenizer=arguments.tokenizer,
        threads=arguments.threads,
        pythons=(("joeynmt", arguments.joey_python), ("opennmt-py", arguments.onmt_python)),
        json=arguments.json,
        models=arguments.models,
    )


def main(words: list[str]) -> int:
    """Measure and report; return the exit status, 1 for a mistake of the user's."""
    try:
        arguments = parser().parse_args(words)
        results = quality.run(options(arguments))
        print(report.quality_text(results), end="", flush=True)
        folder = arguments.plot or (None if arguments.quick else Path("docs"))
        if folder is not None and report.measured(results):
            print(f"Curves: {report.quality_plot(results, folder)}", file=sys.stderr)
    except UserError as error:
        print(f"quality_over_time.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "quality_over_time.py: interrupted; with --json FILE the same command goes on after the last program "
            "that was done.",
            file=sys.stderr,
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
