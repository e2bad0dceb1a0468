"""Figures of the study in other pages: a table and a sentence between two marks, written from the records."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.compare.results import Result
from nmt.compare.verdict import p_text
from nmt.errors import UserError
from nmt.files import write_text
from studying.answers import Answer, RowNoise, against, bleu_of_rows

BEGIN, END = "<!-- study: begin -->", "<!-- study: end -->"
DEFAULT = "luong-general"  # the attention and wiring of nmt.train without overrides
BETTER = f"Significantly better than `{DEFAULT}`, by test set:"
#: The rows that each page quotes, with the page's own words for them.
QUOTED = {
    Path("docs", "choosing-an-attention.md"): {
        "none": "no attention",
        "luong-general": "score `general`, wiring `luong`",
        "luong-general-nofeed": "without input feeding",
        "luong-additive": "score `additive`",
        "luong-concat": "score `concat`",
        "luong-dot": "score `dot`",
        "luong-dot-projected": "score `dot`, projected",
        "luong-scaled_dot": "score `scaled_dot`, not projected",
        "luong-scaled_dot-projected": "score `scaled_dot`",
        "luong-cosine": "score `cosine`",
        "luong-cosine-projected": "score `cosine`, projected",
        "luong-location": "score `location`",
        "luong-local_m-4": "window `local_m`, radius 4",
        "luong-local_m-2": "window `local_m`, radius 2",
        "luong-local_p-4": "window `local_p`, radius 4",
        "luong-local_p-2": "window `local_p`, radius 2",
        "luong-dot-heads-2": "score `dot`, 2 heads",
        "luong-dot-heads-4": "score `dot`, 4 heads",
        "bahdanau": "wiring `bahdanau`, score `additive`",
        "conditional": "wiring `conditional`, score `additive`",
        "coverage": "wiring `bahdanau`, coverage",
        "hard": "wiring `bahdanau`, hard read, sampled",
        "hard-enumerate": "hard read, enumerated, without input feeding",
        "transformer": "Transformer, 3 layers",
        "conv": "convolutional, 3 layers",
    },
    Path("docs", "from-seq2seq-to-transformer.md"): {
        "none": "1: no attention",
        "bahdanau": "2: `bahdanau`, `additive`",
        "luong-additive": "3: `luong`, `additive`",
        "luong-dot": "3: `luong`, `dot`",
        "luong-general": "3: `luong`, `general`",
        "luong-scaled_dot": "4: `luong`, `scaled_dot`, not projected",
        "luong-scaled_dot-projected": "5: `luong`, `scaled_dot`, projected",
        "transformer": "9: Transformer",
    },
}


def quote(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str]) -> None:
    """Write the tables of all pages (UserError: a page has no marks).

    p is corrected by Holm for all rows of the study.

    Args:
        rows: the runs of each row.
        splits: names of test sets -> how the sentence calls them; the table is of the first.
    """
    tests = {
        label: {each.second: each for each in against(RowNoise(rows, name), DEFAULT)} for name, label in splits.items()
    }
    better = "; ".join(f"{label}: {_better(tested)}" for label, tested in tests.items())
    bleu = bleu_of_rows(rows, next(iter(splits)))
    for page, names in QUOTED.items():
        before, begin, rest = page.read_text("utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            raise UserError(f"{page} has no {BEGIN} and {END}, between which a table is written. Restore both.")
        write_text(page, f"{before}{BEGIN}\n\n{_table(names, bleu, tests)}\n\n{BETTER} {better}.\n\n{END}{after}")


def _better(tested: Mapping[str, Answer]) -> str:
    """The rows that are significantly better than the default."""
    return ", ".join(f"`{name}`" for name, each in tested.items() if each.significant and each.difference > 0) or "none"


def _table(names: Mapping[str, str], bleu: Mapping[str, float], tests: Mapping[str, Mapping[str, Answer]]) -> str:
    """BLEU of some rows on the first test set, and on each the difference of each row to the default with its p."""
    lines = [
        f"BLEU is that on {next(iter(tests))}. The other columns are differences to `{DEFAULT}`, in brackets their p.",
        "",
        f"| model | row of the study | BLEU | {' | '.join(tests)} |",
        f"|---|---|{'---:|' * (len(tests) + 1)}",
    ]
    for name, label in names.items():
        if name in bleu:
            answers = [tested.get(name) for tested in tests.values()]
            cells = [f"{each.difference:+.2f} ({p_text(each.p)})" if each else "" for each in answers]
            lines.append(f"| {label} | `{name}` | {bleu[name]:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)
