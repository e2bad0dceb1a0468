"""Run the study of docs/attention-study.md: train its variants, score and record them, write the page.

    python scripts/attention_study.py train multi30k=DIR alignments=DIR [study=NAME] [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py converge multi30k=DIR alignments=DIR [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py effort multi30k=DIR alignments=DIR [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py builtin [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py erasure multi30k=DIR study=NAME
    python scripts/attention_study.py report

`train` trains, scores and records the runs without a record of a study of four epochs (`short`, or another name in
`FOUR_EPOCHS`), jobs=N at a time with one thread each; run the same command again to resume. `converge` first chooses
the learning rate and dropout of eight models on validation data, then trains each for 16 epochs, the best four also in
the other direction. `effort` chooses among 16 random settings of a recurrent model and of a Transformer, and trains the
best of each for 4, 8 and 16 epochs. `builtin` trains on the built-in corpus with one seed. `erasure` compares the
weights of a study's runs, German to English, with the erasure of source words. `report` writes the page from
scripts/study/page.md, its pictures, its tables as CSV and report.html from the records in docs/attention-study. It also
updates quotations in other pages, between `<!-- study: quoted -->` and `<!-- study: end -->`.

`multi30k` is a folder with train.de.gz and so on. `alignments` is a folder with word links: for the validation and test
sets of Multi30k in multi30k_silver/val.de-en.sp and test_2016_flickr.de-en.sp, for other text in deen/text.de, text.en
and gold.sp. Any other KEY=VALUE goes to every training. Studies of other text than Multi30k (`joined`, `tanaka`) need
these: data=text data.source=ja data.target=en data.train=PREFIX and so on.
"""

import json
import os
import re
import shutil
import statistics
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from omegaconf import OmegaConf
from study import erasure, output, records
from study.contrasts import SPLITS
from study.rows import (
    BUDGETS,
    CHOOSING,
    CONVERGED,
    DE_EN,
    EFFORT,
    EN_DE,
    FOUR_EPOCHS,
    GRID,
    LONG,
    ONCE,
    SEEDS,
    SHORT,
    SIZES,
    TEXT,
    TUNING,
    Row,
)
from verbs import key_values, script, verb

from nmt.compare.reader import read_result
from nmt.compare.table_files import as_csv
from nmt.data.lines import read_lines
from nmt.runs.run import Run
from nmt.system.errors import UserError, reading
from nmt.system.files import write_bytes, write_text
from nmt.system.foreign import read_json
from nmt.viewer.blocks import Block, Heading, Lines, as_html

RUNS = Path("checkpoints", "attention-study")
JOINED_TEXT = Path("checkpoints", "attention-study-long")
JOINED = 3  # number of adjacent sentences in a long sentence
DEEN = ("text.de", "text.en", "gold.sp")  # words are separated by spaces
#: Minimum weight of a link; links above it are scored, too, because gold links are one to many.
THRESHOLD = 0.2
DOCS = Path("docs")
PAGE = Path("scripts", "study", "page.md")
QUOTING = (Path("README.md"), DOCS / "choosing-an-attention.md", DOCS / "from-seq2seq-to-transformer.md")
MOST_WORDS = 1500
_RECORDING = threading.Lock()


class Study(NamedTuple):
    """A study: its rows and seeds, overrides for all runs, and a function with the commands to score a finished run."""

    name: str
    rows: Sequence[Row]
    seeds: Sequence[int]
    overrides: Sequence[str]
    measure: Callable[[Path], list[list[str]]]


class Corpus(NamedTuple):
    """Multi30k, its word links, and overrides for all trainings."""

    root: Path
    links: Path
    further: list[str]

    def study(self, name: str, rows: list[Row], seeds: Sequence[int], languages: Sequence[str], *words: str) -> Study:
        """A study of some rows; runs from German are also scored on long sentences and against word links.

        `languages` are overrides for the languages of Multi30k. If empty, the further overrides must name the text.
        """

        def measure(run: Path) -> list[list[str]]:
            splits = [["evaluate", "pictures=0"]]
            if languages != DE_EN or name in CHOOSING:
                return splits
            joined = [f"{key}={path}" for key, path in zip(("source", "reference"), joined_files(), strict=True)]
            aligned = [["align", f"method={link_method(run)}", *words] for words in gold_links(self.root, self.links)]
            return [*splits, ["evaluate", *joined, "pictures=0"], *aligned]

        data = ["data=multi30k", f"data.root={self.root}", *languages] if languages else []
        return Study(name, rows, seeds, [*SIZES, *TEXT, *data, *words, *self.further], measure)


def main(arguments: list[str]) -> int:
    """Run one of the parts and return its exit status."""
    part, *words = arguments or [""]
    settings = key_values(words)
    if part == "report" and not words:
        return report()
    jobs, root, links = settings.pop("jobs", None), settings.pop("multi30k", None), settings.pop("alignments", None)
    if jobs is not None and not (jobs.isdecimal() and int(jobs)):
        raise UserError(f"jobs={jobs}: must be a whole number of at least 1.")
    name = settings.pop("study", "short")
    if part == "erasure" and root is not None and not settings:
        return erase(name, Path(root))
    further = [f"{key}={value}" for key, value in settings.items()]
    count = int(jobs or os.cpu_count() or 1)
    if part == "builtin" and root is None:
        return work(builtin(further), count)
    if part in ("train", "converge", "effort") and root is not None and links is not None:
        join_lines(Path(root))
        corpus = Corpus(Path(root), Path(links), further)
        if part in ("converge", "effort"):
            return (converge if part == "converge" else effort)(corpus, count)
        if name not in FOUR_EPOCHS:
            raise UserError(f"study={name}: must be one of {', '.join(FOUR_EPOCHS)}.")
        rows, languages = FOUR_EPOCHS[name]
        return work(corpus.study(name, rows, SEEDS, languages, *SHORT), count)
    print(__doc__, file=sys.stderr)
    return 1


def converge(corpus: Corpus, jobs: int) -> int:
    """Choose the settings of each model, train it for 16 epochs, and the best four also in the other direction."""
    sweep = {row.name: [Row(f"{row.name}-{at}", (*row.overrides, *words)) for at, words in enumerate(GRID, 1)]
             for row in CONVERGED}  # fmt: skip
    status, rows = choose(corpus, jobs, "tuning", sweep, TUNING)
    if status or (status := work(corpus.study("converged", rows, SEEDS, DE_EN, *LONG), jobs)):
        return status
    best = sorted(rows, key=partial(perplexity, "converged"))[:4]
    return work(corpus.study("back", best, SEEDS, EN_DE, *LONG), jobs)


def effort(corpus: Corpus, jobs: int) -> int:
    """Choose among random settings of two models, and train the best of each with three budgets."""
    status, rows = choose(corpus, jobs, "effort", EFFORT, SHORT)
    for name, epochs in BUDGETS.items():
        status = status or work(corpus.study(name, rows, SEEDS, DE_EN, f"trainer.epochs={epochs}"), jobs)
    return status


def choose(
    corpus: Corpus, jobs: int, study: str, sweep: Mapping[str, Sequence[Row]], words: Sequence[str]
) -> tuple[int, list[Row]]:
    """Train the candidates for each row with one seed; return the exit status, and the rows with the best settings."""
    candidates = [candidate for of_row in sweep.values() for candidate in of_row]
    if status := work(corpus.study(study, candidates, SEEDS[:1], DE_EN, *words), jobs):
        return status, []
    best = {name: min(of_row, key=partial(perplexity, study)) for name, of_row in sweep.items()}
    return 0, [Row(name, candidate.overrides) for name, candidate in best.items()]


def perplexity(study: str, row: Row) -> float:
    """The lowest validation perplexity of each run of a row, averaged over seeds, from the records."""
    runs = records.load(study)[row.name]
    return statistics.fmean(min(entry["valid_perplexity"] for entry in run.history) for run in runs)


def builtin(further: list[str]) -> Study:
    """The variants on the built-in corpus, whose links are exact."""

    def measure(run: Path) -> list[list[str]]:
        thresholds = ("null", THRESHOLD)
        aligned = [["align", f"method={link_method(run)}", f"threshold={threshold}"] for threshold in thresholds]
        return [["evaluate", "pictures=0"], *aligned]

    return Study("builtin", ONCE, [1], [*SIZES, "data=builtin", *further], measure)


def erase(study: str, root: Path) -> int:
    """Record the agreement of measures for each recorded run whose folder still exists."""
    path = records.FOLDER / "erasure.json"
    with reading(path):
        known = {(run["study"], run["row"], run["seed"]): run for run in read_json(path)}
    texts = [root / f"{SPLITS[0]}.{language}.gz" for language in ("de", "en")]
    for key in sorted(key for key in records.recorded() - known.keys() if key[0] == study):
        run = RUNS / study / f"{key[1]}-{key[2]}"
        if run.exists():
            known[key] = {**dict(zip(records.KEY, key, strict=True)), **erasure.agreement(run, *texts)}
            lines = ",\n".join(json.dumps(known[each]) for each in sorted(known))
            write_text(path, f"[\n{lines}\n]\n")
    return 0


def link_method(run: Path) -> str:
    """The method= of `align` for a run: saliency if it has no attention."""
    return "attention" if Run(run).tree()["choices"]["decoder"] != "none" else "saliency"


def joined_files() -> list[Path]:
    """The files of long sentences in German and English."""
    return [JOINED_TEXT / f"test_2016_joined.{language}" for language in ("de", "en")]


def join_lines(root: Path) -> None:
    """Write the long sentences: adjacent lines of the test set, joined."""
    for path in joined_files():
        lines = read_lines(root / f"{SPLITS[0]}{path.suffix}.gz")
        joined = [" ".join(lines[first : first + JOINED]) for first in range(0, len(lines) - JOINED + 1, JOINED)]
        write_text(path, "".join(f"{line}\n" for line in joined))


def gold_links(root: Path, links: Path) -> list[list[str]]:
    """The arguments of `align` for each set of gold links; the shift is chosen on the validation links."""

    def words(prefix: str, name: str) -> list[str]:
        sides = (f"{prefix}{side}={root / name}.{code}.gz" for side, code in (("source", "de"), ("target", "en")))
        return [*sides, f"{prefix}gold={links}/multi30k_silver/{name}.de-en.sp"]

    valid = [*words("valid_", "val"), "valid_words=moses"]
    deen = [f"{key}={links}/deen/{name}" for key, name in zip(("source", "target", "gold"), DEEN, strict=True)]
    return [["words=moses", *words("", SPLITS[0]), *valid], [*deen, *valid]]


def work(study: Study, jobs: int) -> int:
    """Train, score and record all runs without a record, seed by seed; return the highest exit status."""
    known = records.recorded()
    left = [(row, seed) for seed in study.seeds for row in study.rows if (study.name, row.name, seed) not in known]
    total = len(study.rows) * len(study.seeds)
    print(f"{total - len(left)} of {total} runs are recorded, {len(left)} are left.", file=sys.stderr)
    begun: dict[tuple[str, int], Future[int]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for row, seed in sorted(left, key=lambda task: bool(task[0].first)):  # runs that need another run come last
            begun[row.name, seed] = pool.submit(one, study, row, seed, begun.get((row.first, seed)))
        try:
            return max((run.result() for run in begun.values()), default=0)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)  # the trainings get the signal, too, and save their state
            raise


def one(study: Study, row: Row, seed: int, first: Future[int] | None) -> int:
    """Train or copy, score and record one run after the run `first`; return the first exit status that is not 0."""
    if first and (status := first.result()):
        return status
    folder, name = RUNS / study.name, f"{row.name}-{seed}"
    if row.copy_of:
        copy(folder / f"{row.copy_of}-{seed}", folder / name, row.overrides)
        more = [*row.search, "data=run"]  # trust the copy's settings, although it has no checksums
        commands = [[*words, *more] for words in study.measure(folder / name) if words[0] == "evaluate"]
    else:
        place = [f"name={name}", f"checkpoints={folder}", "resume=auto", f"seed={seed}", "threads=1"]
        words = [*study.overrides, *row.overrides]
        if row.start:  # without tokenizer settings: the tokenizer is taken from the first run
            words = [f"start={folder}/{row.start}-{seed}", *(word for word in words if word not in TEXT[:1])]
        status = verb("train", *place, *words)
        if status or Run(folder / name).facts().get("status") != "finished":
            return status
        commands = study.measure(folder / name)
    for command, *words in commands:
        if status := verb(command, f"run={folder / name}", *words, "threads=1"):
            return status
    with _RECORDING:
        records.add({(study.name, row.name, seed): read_result(name, Run(folder / name), None)})
    return 0


def copy(run: Path, place: Path, settings: Sequence[str]) -> None:
    """Copy the files of a run that translating needs, and change settings of its model."""
    ignored = shutil.ignore_patterns("evaluation", "*.pt", "last.safetensors", "checksums.json")
    with reading(run):
        shutil.copytree(run, place, ignore=ignored, dirs_exist_ok=True)
    tree = OmegaConf.merge(OmegaConf.load(place / "config.yaml"), OmegaConf.from_dotlist(list(settings)))
    write_text(place / "config.yaml", OmegaConf.to_yaml(tree))


def wrapped(text: str, width: int) -> str:
    """Rewrap the paragraphs and list items of a Markdown text to lines of at most `width` characters."""
    fill = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    parts = re.split(r"(\n\n|\n(?=- ))", text)
    for at, part in enumerate(parts):
        if part[:1] not in "\n#!" and not part.startswith("    "):
            parts[at] = fill(" ".join(part.split()), subsequent_indent="  " if part.startswith("- ") else "")
    return "".join(parts)


def report() -> int:
    """Write the page, its pictures and tables, and the quotations in other pages from the records; return 0."""
    folder = records.FOLDER
    with reading(folder):
        further = [read_json(folder / f"{name}.json") for name in output.FURTHER]
    study = output.Study(records.load_all(), *further)
    for path, text in pages(study, Path()).items():
        write_text(path, text)
    pictures, tables = study.pictures(), study.tables()
    for picture in pictures:
        write_bytes(folder / f"{picture.name}.png", picture.data)
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", as_csv(table))
    blocks: list[Block] = [
        Lines(["All tables of the study. docs/attention-study.md says what they mean."], lead=True),
        *pictures,
    ]
    for name, table in tables.items():
        if name != "learning":  # the picture has it
            blocks += [Heading(name.replace("-", " ").capitalize()), table]
    write_text(folder / "report.html", as_html(blocks, "The study of attention"))
    return 0


def pages(study: output.Study, root: Path) -> dict[Path, str]:
    """The texts of the page and of the pages that quote the study, by path (UserError if the page is too long)."""
    text = study.filled((root / PAGE).read_text("utf-8"))
    short, _, page = text.partition("\n---\n\n")
    if len(page.split()) > MOST_WORDS:
        raise UserError(f"{PAGE} has {len(page.split()):,} words, more than {MOST_WORDS:,}.")

    def quoted(match: re.Match[str]) -> str:
        begin, before, end = match.groups()
        labels = {row: label for label, row in re.findall(r"^\| ([^|]*) \| `([\w-]+)` \|", before, re.MULTILINE)}
        return f"{begin}\n\n{study.quoted(labels) if labels else wrapped(short, 100).strip()}\n\n{end}"

    pattern = r"(<!-- study: quoted -->)(.*?)(<!-- study: end -->)"
    texts = {root / path: (root / path).read_text("utf-8") for path in QUOTING}
    return {
        root / DOCS / "attention-study.md": wrapped(page, 120) + "\n",
        **{path: re.sub(pattern, quoted, known, flags=re.DOTALL) for path, known in texts.items()},
    }


if __name__ == "__main__":
    sys.exit(script("attention_study.py", main))
