"""Make more training text from a training text: data diversification with cross-fitting (Nguyen et al. 2020).

    python scripts/diversify.py folder=DIR 'data.files=[german.txt,english.txt]' [WORDS of nmt.train ...]
        [folds=5] [samples=1] [chrf=30] [copies=2] [seed=1] [jobs=1] [dry_run=true]

A model has memorised its training text, and would only reproduce the references. So the text is divided into `folds`.
Two models, one per direction, are trained on the other folds and translate a fold. Pairs that share a sentence are in
the same fold. Each line gets the best translation of a beam search. Translations into SOURCE are also sampled,
`samples` times (Edunov et al. 2018); into TARGET they are not, since a model would learn their errors. `jobs` models
are trained at a time; they share the cores equally unless threads= is set.

The script writes DIR/diversified.SOURCE and DIR/diversified.TARGET: `copies` copies of the text, then its translations,
without duplicates and without translations whose chrF against the reference is below `chrf`. Line N of
DIR/diversified.origin is the origin of pair N. DIR/valid and DIR/test are the held-out sets, which were never used.

If the command is killed, run the same command again to resume. Other settings need another folder.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from omegaconf import OmegaConf
from verbs import key_values, script, verb

from nmt.build.parts import build_source
from nmt.config.composition import compose
from nmt.config.configuration import flattened, read_yaml
from nmt.config.quotes import shell_word
from nmt.data.dataset import Split
from nmt.data.holdout import components
from nmt.data.lines import read_lines
from nmt.data.sources import UserFiles
from nmt.evaluation.metrics import sentence_chrf
from nmt.runs.run import Run
from nmt.system import platform as system
from nmt.system.errors import UserError
from nmt.system.files import remove_unfinished, write_json, write_pieces
from nmt.system.foreign import read_json
from nmt.train.recipe import BUDGETS, fit_to_text

NUMBERS = {"folds": 5, "samples": 1, "chrf": 30, "copies": 2, "seed": 1, "jobs": 1}
#: Sampling draws from this many likeliest pieces: the less likely pieces of a small model are poor.
TOP_K = 10
ORIGINAL = "original"


class Job(NamedTuple):
    """A fold, a direction (from `languages[0]` to `languages[1]`), and how many translations are sampled."""

    fold: Path
    languages: tuple[str, str]
    samples: int

    @property
    def run(self) -> Path:
        """The run folder of the model."""
        return self.fold.parent / "runs" / f"{self.fold.name}-{self.languages[0]}-{self.languages[1]}"

    @property
    def is_trained(self) -> bool:
        """Whether the model's training is finished."""
        run = Run(self.run)
        return run.exists() and run.facts().get("status") == "finished"

    @property
    def outputs(self) -> dict[str, Path]:
        """The files of the fold's translations by name."""
        names = ["beam", *(f"sample {number}" for number in range(1, self.samples + 1))]
        return {name: self.fold / f"{name.replace(' ', '-')}.{self.languages[1]}" for name in names}


def main(arguments: Sequence[str]) -> int:
    """Train, translate and merge, as far as the folder lacks results; return the exit status."""
    if not arguments:
        raise UserError(f"Give folder=DIR and the words of a training.\n{__doc__}")
    given = key_values(arguments)
    folder, dry = Path(given.pop("folder", "")), given.pop("dry_run", "false")
    numbers = {key: _number(key, given.pop(key, str(usual))) for key, usual in NUMBERS.items()}
    at_once = numbers.pop("jobs")
    if folder == Path():
        raise UserError("folder=DIR is missing: a new folder for models and text.")
    if dry not in ("true", "false"):
        raise UserError(f"dry_run={dry}: must be true or false.")
    if refused := given.keys() & {"name", "checkpoints", "resume", "start"}:
        raise UserError(f"{min(refused)}= cannot be set: this script names its runs, in {folder}/runs.")
    if not any(key.startswith("data") for key in given):
        raise UserError("The text is missing: data.files=[SOURCE,TARGET], or data= with its settings.")
    text, others, languages, words = _text([f"{key}={value}" for key, value in given.items()])
    plan = {"text": text.fingerprint(), "words": given, **numbers}
    jobs = [
        Job(folder / f"fold-{number}", pair, samples)
        for number in range(1, numbers["folds"] + 1)
        for pair, samples in ((languages, 0), (languages[::-1], numbers["samples"]))
    ]
    remove_unfinished(folder)  # temporary files of a killed command
    _check_plan(folder, plan)
    _say_plan(jobs, len(text.source))
    if dry == "true":
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "plan.json", plan)
    _write_folds(folder, text, others, languages, numbers)
    if status := _work(jobs, words, numbers["seed"], at_once):
        return status
    counts = _merge(folder, jobs, text, languages, numbers)
    print(_summary(folder, counts, [split.name for split in others], languages, words, given))
    return 0


def _number(key: str, value: str) -> int:
    least = {"folds": 2, "samples": 0, "chrf": 0}.get(key, 1)
    if not value.isdecimal() or int(value) < least:
        raise UserError(f"{key}={value}: must be a whole number of at least {least}.")
    return int(value)


def _text(asked: list[str]) -> tuple[Split, list[Split], tuple[str, str], list[str]]:
    """The training text, the other splits, the languages, and the overrides for a training on a part of the text."""
    config, words = compose("train", asked), asked
    source = build_source(config)
    if isinstance(source, UserFiles):
        config, words = fit_to_text(config, words, source)
    else:  # repeat the data set's defaults as overrides, since the folds are another data set
        defaults = read_yaml(f"data_defaults/{config.choices['data']}")
        words = [*(f"{key}={OmegaConf.select(config, key)}" for key in flattened(defaults)), *words]
    text = source.read("train")
    text = text.without(text.empty_rows())
    others = [source.read(name) for name in source.splits() if name != "train"]
    args, budgets = key_values(words), {f"trainer.{budget}" for budget in BUDGETS}
    given = budgets.intersection(word.partition("=")[0] for word in asked)
    left_out = budgets - given if given else set()
    named = [f"{key}={value}" for key, value in args.items() if key.partition(".")[0] != "data" and key not in left_out]
    return text, others, source.languages, named


def _check_plan(folder: Path, plan: Mapping[str, object]) -> None:
    """Raise UserError if the folder belongs to another plan or is not from this script."""
    if not (folder / "plan.json").exists():
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} is not empty, and not of this script. Give another folder=.")
        return
    before = read_json(folder / "plan.json")
    changed = sorted(key for key in plan if before.get(key) != plan[key])
    if changed:
        raise UserError(
            f"{folder} was begun with other {' and '.join(changed)}. Give the same words, or another folder=."
        )


def _say_plan(jobs: Sequence[Job], pairs: int) -> None:
    outputs = [path for job in jobs for path in job.outputs.values()]
    trained, translated = sum(job.is_trained for job in jobs), sum(path.exists() for path in outputs)
    print(
        f"Plan: {pairs:,} pairs in {len(jobs) // 2} folds. {len(jobs)} trainings, {trained} of them done; "
        f"{len(outputs)} translations of a fold, {translated} of them done.",
        flush=True,
    )


def _write_folds(
    folder: Path, text: Split, others: Sequence[Split], languages: tuple[str, str], numbers: Mapping[str, int]
) -> None:
    """Write the text of each fold ("own"), the text of all other folds ("train"), and the held-out sets."""
    fold_of = _folds(text, numbers["folds"], numbers["seed"])
    splits = {folder / split.name: (split.source, split.target) for split in others}
    for number in range(numbers["folds"]):
        for name, rows in (("own", fold_of == number), ("train", fold_of != number)):
            part = text.take(name, np.flatnonzero(rows).tolist())
            splits[folder / f"fold-{number + 1}" / name] = (part.source, part.target)
    for path, sides in splits.items():
        path.parent.mkdir(exist_ok=True)
        for language, lines in zip(languages, sides, strict=True):
            if not _side(path, language).exists():
                write_pieces(_side(path, language), (f"{line}\n" for line in lines))


def _side(path: Path, language: str) -> Path:
    return path.with_name(f"{path.name}.{language}")


def _folds(text: Split, count: int, seed: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The fold of each pair, from 0; folds have about equal sizes, and pairs that share a sentence are in one fold."""
    component = components(text.source, text.target)
    sizes = np.bincount(component)
    order = np.random.default_rng(seed).permutation(len(sizes))
    fold_of, filled = np.zeros(len(sizes), dtype=np.int64), np.zeros(count)
    for number in order[np.argsort(-sizes[order], kind="stable")]:
        fold_of[number] = filled.argmin()
        filled[fold_of[number]] += sizes[number]
    if not filled.all():
        raise UserError(f"folds={count}: {len(component)} pairs that share sentences make only {len(sizes)} folds.")
    return fold_of[component]


def _work(jobs: Sequence[Job], words: Sequence[str], seed: int, at_once: int) -> int:
    """Train and translate, `at_once` jobs at a time, until one fails; return the highest exit status."""
    shared = [f"threads={max(1, system.cores() // at_once)}"] if at_once > 1 else []
    threads = [word for word in words if word.startswith("threads=")][-1:] or shared
    failed: list[int] = []

    def work(job: Job) -> None:
        if not failed and (status := _train(job, [*words, *threads]) or _translate(job, seed, threads)):
            failed.append(status)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            list(pool.map(work, jobs))
            return max(failed, default=0)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)  # the commands get the signal, too, and save their state
            raise


def _train(job: Job, words: Sequence[str]) -> int:
    """Train the model of a job; return the exit status."""
    if job.is_trained:
        return 0
    source, target = job.languages
    data_words = ["data=text", f"data.source={source}", f"data.target={target}"]
    data_words += [f"data.train={job.fold / 'train'}", f"data.valid={job.fold.parent / 'valid'}"]
    print(f"{job.run}: train on the other folds.", flush=True)
    return verb("train", *words, *data_words, f"name={job.run.name}", f"checkpoints={job.run.parent}", "resume=auto")


def _translate(job: Job, seed: int, threads: Sequence[str]) -> int:
    """Translate the fold of a job with its model; return the exit status."""
    for number, (name, output) in enumerate(job.outputs.items()):
        if output.exists():
            continue
        print(f"{output}: {name}.", flush=True)
        how = ["search=sampling", f"search.top_k={TOP_K}", f"search.seed={seed + number}"] if number else []
        paths = [f"run={job.run}", f"input={_side(job.fold / 'own', job.languages[0])}", f"output={output}"]
        if status := verb("translate", *paths, "resume=auto", *threads, *how):
            return status
    return 0


def _merge(
    folder: Path, jobs: Sequence[Job], text: Split, languages: tuple[str, str], numbers: Mapping[str, int]
) -> dict[str, Counter[str]]:
    """Write the complete text with its translations; return the counts of kept and dropped lines by origin."""
    counts: dict[str, Counter[str]] = {}
    pairs = list(zip(text.source, text.target, strict=True))
    seen, rows = set(pairs), [(*pair, ORIGINAL) for _ in range(numbers["copies"]) for pair in pairs]
    for job in jobs:
        for name, output in job.outputs.items():
            origin = f"{name} {job.languages[0]}-{job.languages[1]}"
            count = counts.setdefault(origin, Counter())
            for pair, reference, translation in _fold_pairs(job, output, languages):
                what = "kept"
                if not translation.strip():
                    what = "empty"
                elif pair in seen:
                    what = "known"
                elif sentence_chrf(translation, reference) < numbers["chrf"]:
                    what = "unlike"
                count[what] += 1
                if what == "kept":
                    seen.add(pair)
                    rows.append((*pair, origin))
    for column, ending in enumerate((*languages, "origin")):
        write_pieces(folder / f"diversified.{ending}", (f"{row[column]}\n" for row in rows))
    return {ORIGINAL: Counter(kept=len(pairs) * numbers["copies"], copies=numbers["copies"]), **counts}


def _fold_pairs(job: Job, output: Path, languages: tuple[str, str]) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield the pairs of a translated fold, each with its reference and its translation."""
    sources, references = (read_lines(_side(job.fold / "own", language)) for language in job.languages)
    for line, reference, translation in zip(sources, references, read_lines(output), strict=True):
        yield (line, translation) if job.languages == languages else (translation, line), reference, translation


def _summary(
    folder: Path,
    counts: Mapping[str, Counter[str]],
    sets: Sequence[str],
    languages: tuple[str, str],
    words: Sequence[str],
    given: Mapping[str, str],
) -> str:
    """The table of counts by origin, and the commands to run next."""
    lines = ["| origin | kept | in the text already | chrF too low | empty |", "|---|---:|---:|---:|---:|"]
    for origin, count in counts.items():
        lines.append(
            f"| {origin} | {' | '.join(f'{count[what]:,}' for what in ('kept', 'known', 'unlike', 'empty'))} |"
        )
    pairs = sum(count["kept"] for count in counts.values())
    times = pairs / (counts[ORIGINAL]["kept"] / counts[ORIGINAL]["copies"])
    tests = ",".join(str(folder / name) for name in sets if name != "valid")
    text = [
        *("data=text", f"data.source={languages[0]}", f"data.target={languages[1]}"),
        *(f"data.train={folder / 'diversified'}", f"data.valid={folder / 'valid'}"),
        *([f"data.test=[{tests}]"] if tests else []),
    ]
    data_words = [f"{key}={value}" for key, value in given.items() if key.startswith("data")]
    more, then = (
        " ".join(map(shell_word, ["python", "-m", "nmt.train", *line]))
        for line in ([*text, *words, "name=more"], ["start=checkpoints/more", *data_words, "name=more-own"])
    )
    return "\n".join(
        [
            *lines,
            f"{pairs:,} pairs in {folder}/diversified.*. An epoch is {times:.1f} times as long: lower trainer.epochs.",
            f"Train on these pairs, and then on the text alone:\n  {more}\n  {then}",
        ]
    )


if __name__ == "__main__":
    sys.exit(script("diversify.py", main))
