"""What the pages say in words about the study is what its tables say.

The tables themselves are compared with the records in test_study.py.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = "luong-general"
CELL = re.compile(r"([+-]\d+\.\d\d) \((< 0\.001|\d\.\d{3})\)")
_HEADS = "no gain of two or four heads over one was found on captions. On long lines, there was one with `additive` in"
_FAMILIES = "the recurrent one is significantly better than each on test_2016 and test_2017; on long lines, `conv` is"
_WIRINGS = "it is worse than `conditional` on all three sets, and than `luong` on test_2017 and on long lines."

#: What a page says, the row, the row that it is compared with, verdicts on test_2016, test_2017 and long lines.
CLAIMS = {
    "docs/choosing-an-attention.md": [
        ("no difference to `general` was found on captions; it is better on long", "luong-additive", DEFAULT, "..+"),
        ("Worse than `general` on test_2017.", "luong-dot", DEFAULT, ".-."),
        ("With projections it is worse than `general` on captions", "luong-scaled_dot-projected", DEFAULT, "--."),
        ("No difference to `general` was found. Take it if the length", "luong-cosine", DEFAULT, "..."),
        ("Worse than `general` on all three sets.", "luong-location", DEFAULT, "---"),
        ("no difference to `additive` alone was found on captions; it is better on", "coverage", "bahdanau", "..+"),
        ("From the first update on, it makes the model far worse.", "coverage-loss", "bahdanau", "---"),
        ("Worse than `general` alone on captions, and better on long lines.", "luong-local_m-2", DEFAULT, "--+"),
        ("Worse than `general` alone on captions, and better on long lines.", "luong-local_m-4", DEFAULT, "--+"),
        ("on captions; with a radius of 2 also on long lines.", "luong-local_p-2", DEFAULT, "---"),
        ("on captions; with a radius of 2 also on long lines.", "luong-local_p-4", DEFAULT, "--."),
        ("Worse than the soft read of the same decoder on all three sets.", "hard", "bahdanau", "---"),
        ("worse than the soft read on test_2016.", "hard-enumerate", "luong-additive-nofeed", "-.."),
        (_HEADS, "bahdanau-heads-2", "bahdanau-projected", "..+"),
        (_HEADS, "bahdanau-heads-4", "bahdanau-projected", "..+"),
        (_HEADS, "luong-dot-heads-2", "luong-dot-projected", "..."),
        (_HEADS, "luong-dot-heads-4", "luong-dot-projected", "..."),
        (_HEADS, "luong-scaled_dot-heads-2", "luong-scaled_dot-projected", "..."),
        (_HEADS, "luong-scaled_dot-heads-4", "luong-scaled_dot-projected", "..."),
        ("With `general`, no difference in BLEU was found after four", DEFAULT, "luong-general-nofeed", "..."),
        ("With `additive`, it is better on test_2017 and on long", "luong-additive", "luong-additive-nofeed", ".++"),
        (_WIRINGS, "conditional", "bahdanau", "+++"),
        (_WIRINGS, "luong-additive", "bahdanau", ".++"),
        ("No difference to `luong` with `general` was found on captions; it is", "conditional", DEFAULT, "..+"),
        ("worse than `luong` on captions, better on long lines", "conv", DEFAULT, "--+"),
    ],
    "docs/results.md": [
        (_FAMILIES, "transformer", DEFAULT, "---"),
        (_FAMILIES, "weighted-transformer", DEFAULT, "---"),
        (_FAMILIES, "gru-transformer", DEFAULT, "---"),
        (_FAMILIES, "transformer-luong", DEFAULT, "--."),
        (_FAMILIES, "conv", DEFAULT, "--+"),
    ],
    "docs/from-seq2seq-to-transformer.md": [
        ("long lines, the additive network is better than `general`.", "luong-additive", DEFAULT, "..+"),
        ("Luong's wiring is better than Bahdanau's on test_2017 and on long", "luong-additive", "bahdanau", ".++"),
    ],
    "README.md": [
        ("no variant was significantly better on captions. On much longer lines", "conditional", DEFAULT, "..+"),
    ],
}


def text(page: str) -> str:
    """A page with one space between words."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def verdicts_of_tables() -> dict[tuple[str, str], str]:
    """(row, other row) -> a letter for each test set: + significantly better, - worse, . neither.

    The tests of the study's questions, and where it asks none, those of all rows against the default.
    """
    against_default = (ROOT / "docs" / "choosing-an-attention.md").read_text(encoding="utf-8")
    questions = (ROOT / "docs" / "attention-study.md").read_text(encoding="utf-8").partition("## All contrasts")[2]
    found: dict[tuple[str, str], str] = {}
    for line in [*against_default.splitlines(), *questions.partition("\n## ")[0].splitlines()]:
        cells = [cell.strip(" `") for cell in line.split("|")]
        if len(values := CELL.findall(line)) == 3:
            pair = (cells[2], cells[3] if not cells[3][0].isdigit() else DEFAULT)
            found[pair] = "".join(sign[0] if p[0] == "<" or float(p) < 0.05 else "." for sign, p in values)
    return found


@pytest.mark.parametrize(
    ("page", "said", "row", "against", "verdicts"),
    [(page, *claim) for page, claims in CLAIMS.items() for claim in claims],
)
def test_a_sentence_agrees_with_the_tests(page: str, said: str, row: str, against: str, verdicts: str) -> None:
    assert said in text(page)
    assert verdicts_of_tables()[row, against] == verdicts


def test_nothing_is_better_than_the_default_on_captions() -> None:
    """README.md says so."""
    assert "by test set: test_2016: none; test_2017: none; long lines: `" in text("docs/choosing-an-attention.md")
