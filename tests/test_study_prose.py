"""Sentences about the study on other pages agree with its tables.

test_study.py compares the tables with the records.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = "luong-general"

#: Page -> part of a sentence -> (row, baseline): verdicts on test_2016, test_2017 and long lines.
#: A verdict is + (significantly better), - (significantly worse) or . (not significant).
CLAIMS = {
    "docs/choosing-an-attention.md": {
        "no difference to `general` was found on captions; it is better on": {("luong-additive", DEFAULT): "..+"},
        "Worse than `general` on test_2017.": {("luong-dot", DEFAULT): ".-."},
        "With projections it is worse than `general` on captions": {("luong-scaled_dot-projected", DEFAULT): "--."},
        "No difference to `general` was found. Take it if the length": {("luong-cosine", DEFAULT): "..."},
        "Worse than `general` on all three sets.": {("luong-location", DEFAULT): "---"},
        "no difference to `additive` alone was found on captions; it is better": {("coverage", "bahdanau"): "..+"},
        "From the first update on, it makes the model far worse.": {("coverage-loss", "bahdanau"): "---"},
        "Worse than `general` alone on captions, and better on long lines.": {
            ("luong-local_m-2", DEFAULT): "--+",
            ("luong-local_m-4", DEFAULT): "--+",
        },
        "on captions; with a radius of 2 also on long lines.": {
            ("luong-local_p-2", DEFAULT): "---",
            ("luong-local_p-4", DEFAULT): "--.",
        },
        "Worse than the soft read of the same decoder on all three sets.": {("hard", "bahdanau"): "---"},
        "worse than the soft read on test_2016.": {("hard-enumerate", "luong-additive-nofeed"): "-.."},
        "no gain of two or four heads over one was found on captions. On long lines, there was one with `additive`": {
            (f"{model}-heads-{heads}", f"{model}-projected"): "..+" if model == "bahdanau" else "..."
            for model in ("bahdanau", "luong-dot", "luong-scaled_dot")
            for heads in (2, 4)
        },
        "With `additive`, input feeding is better on test_2017 and on long": {
            ("luong-additive", "luong-additive-nofeed"): ".++"
        },
        "With `general`, no difference in BLEU was found.": {(DEFAULT, "luong-general-nofeed"): "..."},
        "worse than `conditional` on all three sets, and than `luong` on test_2017 and on long lines.": {
            ("conditional", "bahdanau"): "+++",
            ("luong-additive", "bahdanau"): ".++",
        },
        "No difference to `luong` with `general` was found on captions; it is": {("conditional", DEFAULT): "..+"},
        "worse than `luong` on captions, better on long lines": {("conv", DEFAULT): "--+"},
    },
    "docs/results.md": {
        "the recurrent model is significantly better than each on test_2016 and test_2017. On long lines, `conv` is": {
            ("transformer", DEFAULT): "---",
            ("weighted-transformer", DEFAULT): "---",
            ("gru-transformer", DEFAULT): "---",
            ("transformer-luong", DEFAULT): "--.",
            ("conv", DEFAULT): "--+",
        },
    },
    "docs/from-seq2seq-to-transformer.md": {
        "On long lines, the additive network is better than `general`.": {("luong-additive", DEFAULT): "..+"},
        "Luong's wiring is better than Bahdanau's on test_2017 and on long": {("luong-additive", "bahdanau"): ".++"},
    },
    "README.md": {
        "no variant was significantly better on captions. On much longer": {("conditional", DEFAULT): "..+"},
    },
}

AGAINST_DEFAULT = re.compile(r"\| `([^`]+)` \| \d+\.\d\d \|")  # in the table of choosing-an-attention.md
CONTRAST = re.compile(r"\| `([^`]+)` \| `([^`]+)` \|")  # in the table of all contrasts
DIFFERENCE = re.compile(r"([+-])\d+\.\d\d \((< 0\.001|\d\.\d{3})\)")


def text(page: str) -> str:
    """A page with one space between words."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def verdicts() -> dict[tuple[str, str], str]:
    """(row, baseline) -> verdicts of the study's questions or, for other rows, of the tests against the default."""
    contrasts = (ROOT / "docs/attention-study.md").read_text(encoding="utf-8").partition("## All contrasts")[2]
    against_default = (ROOT / "docs/choosing-an-attention.md").read_text(encoding="utf-8")
    by_pair = {}
    for line in [*against_default.splitlines(), *contrasts.partition("\n## ")[0].splitlines()]:
        differences = DIFFERENCE.findall(line)
        pair = CONTRAST.search(line) or AGAINST_DEFAULT.search(line)
        if pair and len(differences) == 3:
            signs = (sign if p[0] == "<" or float(p) < 0.05 else "." for sign, p in differences)
            by_pair[pair[1], pair[2] if pair.re is CONTRAST else DEFAULT] = "".join(signs)
    return by_pair


@pytest.mark.parametrize(
    ("page", "sentence", "claim"),
    [(page, sentence, claim) for page, claims in CLAIMS.items() for sentence, claim in claims.items()],
)
def test_a_sentence_agrees_with_the_tables(
    page: str, sentence: str, claim: dict[tuple[str, str], str], verdicts: dict[tuple[str, str], str]
) -> None:
    assert sentence in text(page)
    assert {pair: verdicts[pair] for pair in claim} == claim


def test_nothing_is_better_than_the_default_on_captions() -> None:
    """README.md says so."""
    assert "by test set: test_2016: none; test_2017: none; long lines: `" in text("docs/choosing-an-attention.md")
