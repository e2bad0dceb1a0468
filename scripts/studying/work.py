"""Trains, scores and records the runs of a study, several at a time; a run that is recorded is not trained again.

A record is one archive for each run, without weights and without the corpus. So a study can be trained on several
machines, a few runs at a time: commit the records, and go on elsewhere.
"""

import os
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from archives import extract
from verbs import verb

from nmt.errors import reading
from nmt.files import replace_atomically
from nmt.runs import Run
from studying.rows import Row

#: Minimum weight of a link, scored beside the best source word alone, because the gold links are one to many.
THRESHOLD = 0.2


@dataclass(frozen=True)
class Study:
    """What is trained, and where its runs and records are.

    Attributes:
        runs: folder of the runs.
        records: folder of the records, one archive each.
        rows: the variants.
        seeds: of each variant.
        overrides: of all runs, the place of the corpus included.
        measure: the commands that score a finished run, in order.
    """

    runs: Path
    records: Path
    rows: Sequence[Row]
    seeds: Sequence[int]
    overrides: Sequence[str]
    measure: Callable[[Path], list[list[str]]]


def archive(study: Study, name: str) -> Path:
    """The record of a run."""
    return study.records / f"{name}.tar.xz"


def work(study: Study, jobs: int | None = None) -> int:
    """Train, score and record what has no record yet; return the highest exit status.

    Seed by seed, so that the study is soon complete with one seed.

    Args:
        study: the study.
        jobs: how many runs at a time, one thread each; None for as many as there are cores.
    """
    left = [
        (f"{row.name}-{seed}", row, seed)
        for seed in study.seeds
        for row in study.rows
        if not archive(study, f"{row.name}-{seed}").exists()
    ]
    total = len(study.rows) * len(study.seeds)
    print(f"{total - len(left)} of {total} runs are recorded, {len(left)} are left.", file=sys.stderr)
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        runs = [pool.submit(_one, study, *task) for task in left]
        try:
            return max((run.result() for run in runs), default=0)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)  # the trainings have got the signal as well, and save their state
            raise


def _one(study: Study, name: str, row: Row, seed: int) -> int:
    """Train, score and record one run; return the first exit status that is not 0."""
    run = study.runs / name
    place = [f"name={name}", f"checkpoints={study.runs}", "resume=auto", f"seed={seed}", "threads=1"]
    status = verb("train", *place, *study.overrides, *row.overrides)
    if status or Run(run).facts().get("status") != "finished":
        return status
    for name_of_verb, *words in study.measure(run):
        status = verb(name_of_verb, f"run={run}", *words, "threads=1")
        if status:
            return status
    return record(run, archive(study, name))


def perplexity(study: Study, row: Row) -> float:
    """The lowest validation perplexity of a row's runs, their mean over seeds, from the records."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{row.name}-{seed}" for seed in study.seeds]
        unpack([archive(study, name) for name in names], Path(folder))
        histories = [Run(Path(folder, name)).history() for name in names]
    return statistics.fmean(map(lowest_perplexity, histories))


def lowest_perplexity(history: Iterable[Mapping[str, float]]) -> float:
    """The lowest validation perplexity of a run."""
    return min(entry["valid_perplexity"] for entry in history)


def link_method(run: Path) -> str:
    """How `align` links words: by saliency if the run has no attention."""
    return "attention" if Run(run).tree()["choices"]["decoder"] != "none" else "saliency"


def record(run: Path, target: Path) -> int:
    """Write the record of a run: of the text only the sentences whose attention maps are shown; return the status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        words = [f"runs=[{run}]", f"records={folder}/records", f"output={report}", "record_text=shown", "pictures=0"]
        return verb("compare", *words, "evaluate=false") or pack(Path(folder, "records"), target)


def pack(folder: Path, target: Path) -> int:
    """Write the files of a folder to an archive; the same files give the same bytes. Return 0."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.mode = 0, 0o755 if member.isdir() else 0o644
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    target.parent.mkdir(parents=True, exist_ok=True)
    with replace_atomically(target) as staging, tarfile.open(staging, "w:xz") as file:
        file.add(folder, arcname=".", filter=plain)
    return 0


def unpack(archives: Iterable[Path], folder: Path) -> None:
    """Unpack records into a folder, each run in a folder of its own.

    Raises:
        UserError: an archive is missing or damaged.
    """
    for path in archives:
        with reading(path, also=(tarfile.TarError,)), tarfile.open(path) as file:
            extract(file, folder)
