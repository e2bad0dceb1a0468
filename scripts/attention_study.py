"""Run the study of docs/attention-study.md: train its variants, score them, write the page.

    python scripts/attention_study.py train multi30k=DIR alignments=DIR [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py converge multi30k=DIR alignments=DIR [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py builtin [jobs=N] [KEY=VALUE ...]
    python scripts/attention_study.py costs [rounds=N]
    python scripts/attention_study.py answers
    python scripts/attention_study.py report

`train` trains, scores and records every run of the short study that has no record yet, jobs=N at a time with one thread
each; the same command goes on after an interruption. `converge` first chooses the learning rate and dropout of eight
models on validation data, then trains each to convergence, the best four in the other direction too. `builtin` trains
on the built-in corpus with one seed. `costs` measures an update and a beam search of every variant, in turn: run it on
an idle machine. `answers` prints what the records say so far, question by question. `report` writes the page from the
committed records.

`multi30k` is a folder with train.de.gz and so on. `alignments` is a folder with word links: for its validation and test
sets multi30k_silver/val.de-en.sp and test_2016_flickr.de-en.sp, for other text deen/text.de, text.en and gold.sp.
Any other KEY=VALUE goes to every training.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from studying import costs
from studying.page import FOLDER, JOINED, RECORDS, SPLIT, answered, report
from studying.rows import CONVERGED, DE_EN, EN_DE, GRID, LONG, ONCE, ROWS, SEEDS, SHORT, SIZES, TEXT, TUNING, Row
from studying.work import THRESHOLD, Study, link_method, perplexity, work
from verbs import key_values, script

from nmt.data.lines import read_lines
from nmt.errors import UserError
from nmt.files import write_text

RUNS = Path("checkpoints", "attention-study")
JOINED_TEXT = Path("checkpoints", "attention-study-long")
DEEN = ("text.de", "text.en", "gold.sp")  # words between spaces


def main(arguments: list[str]) -> int:
    """Run one of the parts and return its exit status."""
    part, *words = arguments or [""]
    settings = key_values(words)
    if part == "costs" and set(settings) <= {"rounds"}:
        return costs.measure(ROWS, _count(settings, "rounds") or 7)
    if part == "answers" and not words:
        return answered(RECORDS)
    if part == "report" and not words:
        return report()
    jobs, root, links = _count(settings, "jobs"), settings.pop("multi30k", None), settings.pop("alignments", None)
    further = [f"{key}={value}" for key, value in settings.items()]
    if part == "builtin" and root is None:
        return work(builtin(further), jobs)
    if part in ("train", "converge") and root is not None and links is not None:
        join_lines(Path(root))
        corpus = Corpus(Path(root), Path(links), further)
        return work(corpus.short(), jobs) if part == "train" else converge(corpus, jobs)
    print(__doc__, file=sys.stderr)
    return 1


def _count(settings: dict[str, str], key: str) -> int | None:
    """Take out a number (UserError if it is none, or below 1); None if it is not there."""
    value = settings.pop(key, None)
    if value is not None and not (value.isdecimal() and int(value)):
        raise UserError(f"{key}={value}: must be a whole number of at least 1.")
    return None if value is None else int(value)


class Corpus(NamedTuple):
    """Multi30k, its word links, and overrides of every training."""

    root: Path
    links: Path
    further: list[str]

    def study(self, name: str, rows: list[Row], seeds: Sequence[int], *overrides: str, links: bool = True) -> Study:
        """A study of some rows; with `links`, runs are scored on long sentences and against word links, too."""

        def measure(run: Path) -> list[list[str]]:
            splits = [["evaluate", "pictures=0"]]  # all of them: a record without one is refused
            if not links:
                return splits
            joined = [f"{key}={path}" for key, path in zip(("source", "reference"), joined_files(), strict=True)]
            aligned = [["align", f"method={link_method(run)}", *words] for words in gold_links(self.root, self.links)]
            return [*splits, ["evaluate", *joined, "pictures=0"], *aligned]

        place = f"data.root={self.root}"
        return Study(
            RUNS / name, FOLDER / name, rows, seeds, [*SIZES, *TEXT, place, *overrides, *self.further], measure
        )

    def short(self) -> Study:
        """All variants, German to English."""
        return self.study("short", ROWS, SEEDS, *DE_EN, *SHORT)


def converge(corpus: Corpus, jobs: int | None) -> int:
    """Choose the settings of each model, train it to convergence, and the best four in the other direction."""
    candidates = [
        Row(f"{row.name}-{at}", (*row.overrides, *words)) for row in CONVERGED for at, words in enumerate(GRID, 1)
    ]
    tuning = corpus.study("tuning", candidates, SEEDS[:1], *DE_EN, *TUNING, links=False)
    if status := work(tuning, jobs):
        return status
    rows = [
        Row(row.name, min(_of(candidates, row), key=lambda candidate: perplexity(tuning, candidate)).overrides)
        for row in CONVERGED
    ]
    there = corpus.study("converged", rows, SEEDS, *DE_EN, *LONG)
    if status := work(there, jobs):
        return status
    best = sorted(rows, key=lambda row: perplexity(there, row))[:4]
    return work(corpus.study("back", best, SEEDS, *EN_DE, *LONG, links=False), jobs)


def _of(candidates: Sequence[Row], row: Row) -> list[Row]:
    return [candidate for candidate in candidates if candidate.name.rpartition("-")[0] == row.name]


def builtin(further: list[str]) -> Study:
    """The variants on the built-in corpus, whose links are exact."""

    def measure(run: Path) -> list[list[str]]:
        aligned = [
            ["align", f"method={link_method(run)}", f"threshold={threshold}"] for threshold in ("null", THRESHOLD)
        ]
        return [["evaluate", "pictures=0"], *aligned]

    return Study(RUNS / "builtin", FOLDER / "builtin", ONCE, [1], [*SIZES, "data=builtin", *further], measure)


def joined_files() -> list[Path]:
    """The files of long sentences, German and English."""
    return [JOINED_TEXT / f"test_2016_joined.{language}" for language in ("de", "en")]


def join_lines(root: Path) -> None:
    """Write the long sentences: neighbouring lines of the test set in one."""
    for path in joined_files():
        lines = read_lines(root / f"{SPLIT}{path.suffix}.gz")
        joined = [" ".join(lines[first : first + JOINED]) for first in range(0, len(lines) - JOINED + 1, JOINED)]
        write_text(path, "".join(f"{line}\n" for line in joined))


def gold_links(root: Path, links: Path) -> list[list[str]]:
    """Arguments of `align` for each set of links; the shift is chosen on the validation links."""

    def words(prefix: str, name: str) -> list[str]:
        sides = (f"{prefix}{side}={root / name}.{code}.gz" for side, code in (("source", "de"), ("target", "en")))
        return [*sides, f"{prefix}gold={links}/multi30k_silver/{name}.de-en.sp"]

    valid = [*words("valid_", "val"), "valid_words=moses"]
    deen = [f"{key}={links}/deen/{name}" for key, name in zip(("source", "target", "gold"), DEEN, strict=True)]
    return [["words=moses", *words("", SPLIT), *valid], [*deen, *valid]]


if __name__ == "__main__":
    sys.exit(script("attention_study.py", main))
