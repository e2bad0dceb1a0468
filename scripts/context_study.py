"""Measure what each mechanism of context learns: contrastive accuracy by distance on the built-in documents.

    python scripts/context_study.py [jobs=N] [folder=DIR] [seeds=1,2,3] [KEY=VALUE ...]

Trains every mechanism with 0 to 3 previous sentences, jobs=N at a time with one thread each (default: one per core),
and tests it with `nmt.contrast`. Run it again, and it picks up where it left off: finished runs and tests are kept. At
the end it prints a table, which is in DIR/table.md as well. Any other KEY=VALUE goes to every training.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from verbs import key_values, script

from nmt.errors import UserError
from nmt.files import write_text

TRANSFORMER = (
    *("encoder=transformer", "decoder=transformer", "encoder/positions=relative", "model.embedding_size=128"),
    *("encoder.layers=2", "decoder.layers=2", "attention.size=null", "encoder.size=128", "optimizer.lr=0.001"),
)
#: The models by name: what they are made of beside the defaults of data=documents.
MODELS: dict[str, tuple[str, ...]] = {
    "concat": ("context=concat",),
    "hierarchical": ("context=hierarchical",),
    "hierarchical over_attention": ("context=hierarchical", "context.words=over_attention"),
    "segments": ("context=segments",),
    "concat transformer": ("context=concat", *TRANSFORMER),
    "segments transformer": ("context=segments", *TRANSFORMER),
}


class Job(NamedTuple):
    """A run: its model, the previous sentences that it sees, its seed."""

    model: str
    sentences: int
    seed: int

    @property
    def name(self) -> str:
        """The name of the run's folder; without context, mechanisms do not differ."""
        return f"{self.model.replace(' ', '-')}-{self.sentences}-seed{self.seed}"


def jobs_of(seeds: Sequence[int]) -> list[Job]:
    """Every run, those of one seed after the other."""
    return [
        Job(model, sentences, seed)
        for seed in seeds
        for model in MODELS
        for sentences in ((0, 1, 2, 3) if model.startswith("concat") else (1, 2, 3))
    ]


def commands(job: Job, folder: Path, further: Sequence[str]) -> list[list[str]]:
    """The commands of a run whose result is missing."""
    words = [f"name={job.name}", f"checkpoints={folder}", f"cache={folder / 'cache'}", "resume=auto"]
    words += ["data=documents", *MODELS[job.model], f"context.sentences={job.sentences}", f"seed={job.seed}"]
    test = [f"run={folder / job.name}", f"output={result_of(job, folder)}"]
    plain = ["threads=1", "device=cpu"]
    return [["train", *words, "trainer.tensorboard=false", *plain, *further], ["contrast", *test, *plain]]


def result_of(job: Job, folder: Path) -> Path:
    """The figures of a run."""
    return folder / "figures" / f"{job.name}.json"


def work(job: Job, folder: Path, further: Sequence[str]) -> str:
    """Do what is missing of a run; returns an error message, or "" if all is well."""
    if result_of(job, folder).exists():
        return ""
    log = folder / "logs" / f"{job.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    result_of(job, folder).parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("a", encoding="utf-8") as output:
        for verb, *words in commands(job, folder, further):
            line = [sys.executable, "-m", f"nmt.{verb}", *words]
            if subprocess.run(line, stdout=output, stderr=output, env=environment, check=False).returncode:
                return f"{job.name}: nmt.{verb} failed, see {log}."
    return ""


def table(results: dict[Job, dict[str, Any]]) -> str:
    """Accuracy in percent by distance: the mean over seeds, and the lowest and the highest."""
    distances = sorted({name for figures in results.values() for name in figures if name != "all"}, key=int)
    chance = {name: 100 * next(iter(results.values()))[name]["chance"] for name in distances}
    header = ["model", "context", "seeds", *(f"distance {name} (chance {chance[name]:.1f})" for name in distances)]
    lines = [" | ".join(header), " | ".join("---" for _ in header)]
    for model, sentences in dict.fromkeys((job.model, job.sentences) for job in results):
        runs = [figures for job, figures in results.items() if job[:2] == (model, sentences)]
        cells = [model, str(sentences), str(len(runs))]
        for name in distances:
            values = [100 * figures[name]["accuracy"] for figures in runs]
            cells.append(f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})")
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Train and test what is missing, and print the table."""
    given = key_values(arguments)
    count, folder = given.pop("jobs", str(os.cpu_count() or 1)), Path(given.pop("folder", "checkpoints/context-study"))
    seeds = given.pop("seeds", "1,2,3").split(",")
    if not (count.isdecimal() and int(count)):
        raise UserError(f"jobs={count}: must be a whole number, at least 1.")
    if not all(seed.isdecimal() for seed in seeds):
        raise UserError(f"seeds={','.join(seeds)}: must be whole numbers with commas between.")
    jobs = jobs_of([int(seed) for seed in seeds])
    further = [f"{key}={value}" for key, value in given.items()]
    with ThreadPoolExecutor(int(count)) as pool:
        errors = [error for error in pool.map(lambda job: work(job, folder, further), jobs) if error]
    results = {
        job: json.loads(result_of(job, folder).read_text(encoding="utf-8"))["by_distance"]
        for job in jobs
        if result_of(job, folder).exists()
    }
    if results:
        write_text(folder / "table.md", table(results))
        print(table(results), end="")
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(script("context_study.py", main))
