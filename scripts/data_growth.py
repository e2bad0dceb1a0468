"""What text costs: memory, time and speed of a training by the number of its pairs.

    python scripts/data_growth.py text=DIR/train source=de target=en [pairs=1000000,3000000] [output=FILE.json]

Writes files of so many pairs, whose lines are those of `text` over and over, and trains a small model on them for a few
updates, twice: without and with the cache of tokenised text. Prints a Markdown table: anonymous memory of all processes
at its highest, before the first update and after it (pages of mapped files are not in it, since the system takes them
back when it needs them), processor time until the first update, and target tokens
a second. `plot=FILE.png` draws the highest memory of figures in `output`.
Needs Linux.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from verbs import key_values, script

from nmt.data.lines import read_lines
from nmt.data.sources import find_file
from nmt.errors import UserError

SMALL = (
    *("model.embedding_size=64", "encoder.size=64", "decoder.size=64", "attention.size=64", "trainer.steps=200"),
    *("trainer.tensorboard=false", "trainer.log_seconds=1", "threads=1", "precision=float32", "name=growth"),
)
VALID = 100
TITLE = "| pairs | cache | MB before training | MB in training | CPU seconds before training | target tokens/s |"


def main(arguments: list[str]) -> int:
    """Measure each number of pairs, print the table, write the figures."""
    given = key_values(arguments)
    if "plot" in given:
        return plot(json.loads(Path(given["output"]).read_text("utf-8")), Path(given["plot"]))
    if not {"text", "source", "target"} <= given.keys():
        print(__doc__, file=sys.stderr)
        return 1
    languages = given.pop("source"), given.pop("target")
    lines = [read_lines(find_file(Path(given["text"]), language)) for language in languages]
    counts = [int(count) for count in given.pop("pairs", "1000000").split(",")]
    output, further = given.pop("output", None), [f"{k}={v}" for k, v in given.items() if k != "text"]
    figures = []
    with tempfile.TemporaryDirectory(dir=Path("checkpoints")) as folder:
        for count in counts:
            place = Path(folder, str(count))
            write(place, lines, languages, count)
            for cached in (False, True):
                figures.append({"pairs": count, "cached": cached, **trained(place, languages, further)})
                print(row(figures[-1]), file=sys.stderr, flush=True)
            shutil.rmtree(place)
    print("\n".join([TITLE, "|---:|---|---:|---:|---:|---:|"]))
    print("\n".join(map(row, figures)))
    if output:
        Path(output).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


def row(figure: dict[str, Any]) -> str:
    """A line of the table."""
    cells = (
        f"{figure['pairs']:,}",
        "full" if figure["cached"] else "empty",
        f"{figure['before']:,.0f}",
        f"{figure['training']:,.0f}",
        f"{figure['seconds']:.1f}",
        f"{figure['speed']:,.0f}",
    )
    return f"| {' | '.join(cells)} |"


def write(folder: Path, lines: list[list[str]], languages: tuple[str, str], count: int) -> None:
    """Files of `count` pairs, and a few for validation."""
    folder.mkdir(parents=True)
    for side, language in zip(lines, languages, strict=True):
        for name, most in (("train", count), ("valid", VALID)):
            with (folder / f"{name}.{language}").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in islice(cycle(side), most))


def trained(folder: Path, languages: tuple[str, str], further: list[str]) -> dict[str, float]:
    """Figures of one training; its run is removed, the cache stays."""
    words = [
        *(f"data.{side}={language}" for side, language in zip(("source", "target"), languages, strict=True)),
        *(f"data.{name}={folder / name}" for name in ("train", "valid")),
        *(f"cache={folder / 'cache'}", f"checkpoints={folder / 'runs'}"),
    ]
    command = [sys.executable, "-m", "nmt.train", "data=text", *words, *SMALL, *further]
    log = folder / "log"
    before = training = seconds = 0.0
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        while process.poll() is None:
            family = list(descendants(process.pid))
            memory = sum(map(anonymous, family))
            if seconds:
                training = max(training, memory)
            else:
                before = max(before, memory)
                seconds = sum(map(processor_seconds, family)) if b"Training: " in log.read_bytes() else 0.0
            time.sleep(0.05)
    text = log.read_text("utf-8", "replace")
    speeds = re.findall(r"([\d,]+) target tokens/s", text)
    if process.returncode or not speeds:
        raise UserError(f"The training of {folder.name} pairs failed:\n{text[-2000:]}")
    shutil.rmtree(folder / "runs")
    return {"before": before, "training": training, "seconds": seconds, "speed": float(speeds[-1].replace(",", ""))}


def descendants(process: int) -> Iterator[int]:
    """A process and all below it."""
    yield process
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from descendants(int(child))


def anonymous(process: int) -> float:
    """Memory of a process that is no file, in MB; 0 if it has ended."""
    try:
        match = re.search(r"Anonymous:\s+(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text())
    except OSError:
        return 0.0
    return int(match[1]) / 1000 if match else 0.0


def processor_seconds(process: int) -> float:
    """Processor time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def plot(figures: list[dict[str, Any]], target: Path) -> int:
    """Draw memory over pairs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for cached, label in ((False, "text is tokenised"), (True, "tokenised text is in the cache")):
        own = [one for one in figures if one["cached"] == cached]
        points = [(one["pairs"] / 1e6, max(one["before"], one["training"])) for one in own]
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    axes.set(
        xlabel="million pairs",
        ylabel="highest anonymous memory, MB",
        ylim=(0, 1.1 * max(max(one["before"], one["training"]) for one in figures)),
    )
    axes.legend(frameon=False)
    figure.savefig(target, dpi=120)
    return 0


if __name__ == "__main__":
    sys.exit(script("data_growth.py", main))
