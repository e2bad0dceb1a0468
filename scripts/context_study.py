"""Measure what each mechanism of context learns: contrastive accuracy by distance on the built-in documents.

    python scripts/context_study.py [jobs=N] [seeds=1,2,3] [sentences=0,1,2,3] [models=NAME,...] [KEY=VALUE ...]
    python scripts/context_study.py page=docs/documents.md

The first command trains every model with so many previous sentences, jobs=N at a time with one thread each (default:
one per core), seed by seed, and tests it with `nmt.contrast`. Each finished run leaves a record of 1 KB in
records=DIR (docs/context-study). A recorded run is not trained again, and an interrupted one is resumed. Runs are in
folder=DIR (checkpoints/context-study). Any other KEY=VALUE goes to every training. At the end it prints the table.

The second command trains nothing. It writes the table of the records into the page.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from verbs import key_values, script

from nmt.errors import UserError, reading
from nmt.files import write_json, write_text
from nmt.runs import Run

RECORDS = Path(__file__).resolve().parents[1] / "docs" / "context-study"
#: Between these lines of a page stands the table of the records.
BEGIN, END = "<!-- context study: begin -->\n", "<!-- context study: end -->\n"

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


#: What tables need of a record.
FIELDS = {"model", "sentences", "seed", "settings", "step", "text", "by_distance"}


class Job(NamedTuple):
    """A run: its model, the previous sentences that it sees, its seed."""

    model: str
    sentences: int
    seed: int

    @property
    def name(self) -> str:
        """The name of the run's folder and of its record; without context, mechanisms do not differ."""
        return f"{self.model.replace(' ', '-')}-{self.sentences}-seed{self.seed}"


class Study(NamedTuple):
    """Where runs and records are, and the settings of every training."""

    folder: Path
    records: Path
    further: Sequence[str] = ()

    def record_of(self, job: Job) -> Path:
        """The record of a run."""
        return self.records / f"{job.name}.json"


def jobs_of(seeds: Sequence[int], sentences: Sequence[int] = (0, 1, 2, 3), models: Sequence[str] = ()) -> list[Job]:
    """The runs of these models (all by default), those of one seed after the other.

    Without context the mechanisms of an encoder are the same model, which runs once, under `concat`.
    """
    return [
        Job(model, count, seed)
        for seed in seeds
        for model in models or MODELS
        for count in sentences
        if count or model.startswith("concat")
    ]


def commands(job: Job, study: Study) -> list[list[str]]:
    """The commands that train and test a run."""
    folder = study.folder
    words = [f"name={job.name}", f"checkpoints={folder}", f"cache={folder / 'cache'}", "resume=auto"]
    words += ["data=documents", *MODELS[job.model], f"context.sentences={job.sentences}", f"seed={job.seed}"]
    test = [f"run={folder / job.name}", f"output={folder / 'figures' / job.name}.json"]
    plain = ["threads=1", "device=cpu"]
    return [["train", *words, "trainer.tensorboard=false", *plain, *study.further], ["contrast", *test, *plain]]


def work(job: Job, study: Study) -> str:
    """Do what is missing of a run and record it; returns an error message, or "" if all is well.

    Raises:
        UserError: there is a record of the run with other settings.
    """
    if study.record_of(job).exists():
        if read_record(study.record_of(job))["settings"] == list(study.further):
            return ""
        raise UserError(
            f"{study.record_of(job)}: recorded with other settings. Give the same KEY=VALUE, or other records= folder=."
        )
    log, figures = study.folder / "logs" / f"{job.name}.log", study.folder / "figures" / f"{job.name}.json"
    for path in (log, figures):
        path.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("a", encoding="utf-8") as output:
        for verb, *words in commands(job, study):
            line = [sys.executable, "-m", f"nmt.{verb}", *words]
            if subprocess.run(line, stdout=output, stderr=output, env=environment, check=False).returncode:
                return f"{job.name}: nmt.{verb} failed, see {log}."
    facts, tested = Run(study.folder / job.name).facts(), json.loads(figures.read_text(encoding="utf-8"))
    if facts["status"] != "finished":
        return f"{job.name}: was interrupted. The same command resumes it."
    study.records.mkdir(parents=True, exist_ok=True)
    write_json(
        study.record_of(job),
        {
            **job._asdict(),
            "settings": list(study.further),
            **{key: facts[key] for key in ("step", "epochs", "minutes", "code")},
            "torch": facts["versions"]["torch"],
            "text": tested["text"],
            "by_distance": tested["by_distance"],
        },
    )
    return ""


def work_all(jobs: Sequence[Job], study: Study, count: int) -> list[str]:
    """Do what is missing of the runs, `count` at a time; returns the error messages."""
    errors = []
    with ThreadPoolExecutor(count) as pool:
        tasks = {pool.submit(work, job, study): job for job in jobs}
        try:
            for task in as_completed(tasks):
                errors += [error] if (error := task.result()) else []
                print(error or f"{tasks[task].name}: recorded", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C has reached the trainings as well, which save their state
            raise
    return errors


def read_record(path: Path) -> dict[str, Any]:
    """A record (UserError if the file is damaged)."""
    with reading(path, also=(ValueError,)):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(record, dict) and record.keys() >= FIELDS and record["model"] in MODELS):
            raise ValueError("not a record of this study")
    return record


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder, in the order of the table.

    Raises:
        UserError: a record is damaged, or the records are of several texts or settings, which no table can compare.
    """
    records = [read_record(path) for path in sorted(folder.glob("*.json"))]
    for key in ("text", "settings"):
        if len({json.dumps(record[key]) for record in records}) > 1:
            raise UserError(f"{folder}: has records of several {key}. Give another folder: records=DIR.")
    known = list(MODELS)
    return sorted(records, key=lambda one: (known.index(one["model"]), one["sentences"], one["seed"]))


def table(records: Sequence[dict[str, Any]]) -> str:
    """Accuracy in percent by distance: the mean over seeds, and the lowest and the highest; chance in the first row."""
    figures = records[0]["by_distance"]
    distances = sorted((name for name in figures if name != "all"), key=int)
    rows = [["model", "context", "seeds", *(f"distance {name}" for name in distances)], ["---"] * (3 + len(distances))]
    rows.append(["chance", "", "", *(f"{100 * figures[name]['chance']:.1f}" for name in distances)])
    for (model, sentences), runs in itertools.groupby(records, key=lambda one: (one["model"], one["sentences"])):
        by_distance = [run["by_distance"] for run in runs]
        cells = [model, str(sentences), str(len(by_distance))]
        for name in distances:
            values = [100 * figures[name]["accuracy"] for figures in by_distance]
            cells.append(f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})")
        rows.append(cells)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def section(records: Sequence[dict[str, Any]]) -> str:
    """What a page says of the records."""
    if not records:
        return "The study has no records yet.\n"
    settings = " ".join(records[0]["settings"])
    steps = sorted(record["step"] for record in records)
    return (
        f"{table(records)}\nAccuracy in percent: the mean over seeds, in brackets the lowest and the highest. "
        f"{len(records)} runs of {steps[0]:,} to {steps[-1]:,} updates{settings and f' with `{settings}`'}.\n"
    )


def write_page(page: Path, records: Path) -> None:
    """Write the table of the records between the marks of a page (UserError if it has none)."""
    with reading(page):
        text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UserError(f"{page}: has no place for the table. Write two lines: {BEGIN.strip()} and {END.strip()}.")
    write_text(page, f"{before}{BEGIN}\n{section(read_records(records))}\n{END}{after}")


def _numbers(key: str, text: str) -> list[int]:
    if not all(word.isdecimal() for word in text.split(",")):
        raise UserError(f"{key}={text}: must be whole numbers with commas between.")
    return [int(word) for word in text.split(",")]


def main(arguments: list[str]) -> int:
    """Train and test what is missing and print the table, or write it into a page."""
    given = key_values(arguments)
    folder, records = (Path(given.pop(*item)) for item in (("folder", "checkpoints/context-study"),
                                                           ("records", str(RECORDS))))  # fmt: skip
    if "page" in given:
        write_page(Path(given["page"]), records)
        return 0
    count = given.pop("jobs", str(os.cpu_count() or 1))
    if not (count.isdecimal() and int(count)):
        raise UserError(f"jobs={count}: must be a whole number, at least 1.")
    seeds = _numbers("seeds", given.pop("seeds", "1,2,3"))
    sentences = _numbers("sentences", given.pop("sentences", "0,1,2,3"))
    names = {name.replace(" ", "-"): name for name in MODELS}
    models = given.pop("models", ",".join(names)).split(",")
    if unknown := [name for name in models if name not in names]:
        raise UserError(f"models={unknown[0]} does not exist. Give some of: {', '.join(names)}.")
    study = Study(folder, records, [f"{key}={value}" for key, value in given.items()])
    errors = work_all(jobs_of(seeds, sentences, [names[name] for name in models]), study, int(count))
    if found := read_records(records):
        print(table(found), end="")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(script("context_study.py", main))
