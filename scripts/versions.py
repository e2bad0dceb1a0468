"""Compare the speed of the working tree with an earlier revision in training and translating, in turn in one run.

    python scripts/versions.py REVISION [--rounds N] [--data DIR] [--tokenizer FILE] [--only PART,...] [--quick]

Prints a table of target tokens per second in training and sentences per second in translating, and the ratio of the
working tree to the revision: the median over the rounds, with minimum and maximum in brackets. Both translate with the
same weights, which the revision has trained. The revision must have `scripts/benchmarking/`.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking.commands import Parser, add_common, count, select
from benchmarking.session import Options, Session, say
from benchmarking.settings import WIRINGS, Json

from nmt.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("training", "translating")
#: Ways of translating: the search, and sentences per batch.
SEARCHES = (("greedy", 64), ("beam5", 64), ("beam5", 1))


class Version:
    """A process that runs one job with the code of one tree."""

    def __init__(self, tree: Path, log: Path, **settings: object) -> None:
        """Start the process and wait until it is ready; its standard error goes to `log`."""
        path = os.pathsep.join((str(tree), str(tree / "scripts")))
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(ROOT / "scripts/benchmarking/other_version.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
            )
        self.ask(**settings)

    def ask(self, **order: object) -> Json:
        """Send an order and return the answer (UserError if the process has ended)."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        with contextlib.suppress(BrokenPipeError):
            sink.write(json.dumps(order, default=str) + "\n")
            sink.flush()
        line = source.readline()
        if not line:
            end = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
            raise UserError("A version under measurement ended. The last lines that it wrote:\n" + "\n".join(end))
        return dict(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def check_out(revision: str, folder: Path) -> None:
    """Write the files of a revision into `folder` (UserError if git does not know the revision)."""
    archive = subprocess.run(["git", "archive", revision, "nmt", "scripts", "configs"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        raise UserError(f"git cannot give revision {revision}: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


def compare(cases: Mapping[str, Version], rounds: int, label: str, unit: str, **order: object) -> str:
    """Measure one kind of work with both versions in turn; return its row of the table."""
    speeds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds):
        turn = list(cases) if number % 2 == 0 else list(cases)[::-1]
        for name in turn:
            answer = cases[name].ask(**order)
            speeds[name].append(answer[unit] / answer["seconds"])
    before, current = (speeds[name] for name in cases)
    ratios = [after / earlier for earlier, after in zip(before, current, strict=True)]
    row = [label, *(f"{statistics.median(values):,.1f}" for values in (before, current))]
    row.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    say(" | ".join(row))
    return "| " + " | ".join(row) + " |"


def measure(session: Session, trees: Mapping[str, Path], parts: Sequence[str], rounds: int, quick: bool) -> list[str]:
    """Measure all wirings; return the rows of the table."""
    scale, rows = session.scale, []
    shared = {"quick": quick, "pieces": session.sizes.pieces, "folder": session.data}
    shared["place"] = ["cpu", "float32", session.threads]
    for wiring in WIRINGS:
        weights = session.folder / f"{wiring}.safetensors"
        with contextlib.ExitStack() as stack:
            cases = {
                name: stack.enter_context(Version(tree, session.log, job="training", wiring=wiring, **shared))
                for name, tree in trees.items()
            }
            for case in cases.values():
                case.ask(updates=scale.warm_up)
            if "training" in parts:
                rows.append(compare(cases, rounds, f"training `{wiring}`", "tokens", updates=scale.updates))
            if "translating" in parts:
                first = next(iter(cases.values()))
                first.ask(updates=scale.trained)
                first.ask(save=weights)
        for search, batch in SEARCHES if "translating" in parts else ():
            work = {"job": "translating", "wiring": wiring, "search": search, "batch": batch, "weights": weights}
            with contextlib.ExitStack() as stack:
                cases = {
                    name: stack.enter_context(Version(tree, session.log, **work, **shared))
                    for name, tree in trees.items()
                }
                label = f"{search} `{wiring}`, {batch} together"
                rows.append(compare(cases, rounds, label, "sentences", sentences=scale.translated[batch]))
    return rows


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    try:
        _run(words)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(words: Sequence[str] | None) -> None:
    parser = Parser(prog="versions.py", description="Measures the working tree beside a revision, both in turn.")
    parser.add_argument("revision", metavar="REVISION", help="an earlier revision of git")
    parser.add_argument("--rounds", metavar="N", type=count, default=5, help="how often everything is measured (5)")
    parser.add_argument("--only", metavar="PART,...", help=f"of {','.join(PARTS)} (both)")
    add_common(parser)
    arguments = parser.parse_args(words)
    parts = select("--only", arguments.only, PARTS)
    with tempfile.TemporaryDirectory(prefix="nmt-versions-") as name:
        folder = Path(name)
        (folder / "old").mkdir()
        check_out(arguments.revision, folder / "old")
        session = Session(Options(arguments.quick, arguments.data, arguments.tokenizer, arguments.threads), folder)
        trees = {arguments.revision: folder / "old", "working tree": ROOT}
        rows = measure(session, trees, parts, arguments.rounds, arguments.quick)
    print(f"| work | {' | '.join(trees)} | ratio |\n|---|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    sys.exit(main())
