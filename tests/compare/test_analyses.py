"""The sections on words and sentences: their order, their text, many variants, strangers' text."""

import re

import pytest

from nmt.compare import report
from nmt.compare.results import ForcedReference, Result, WordFacts
from nmt.compare.slices import Slicing
from nmt.compare.variants import Comparison, compare
from nmt.viewer.blocks import Block, Heading, Interactive, Lines, Picture, Scatter, Sentences, Table, as_html
from tests.compare.runs import NEW, OLD, PLAIN, runs_of, texts

pytestmark = pytest.mark.long


def known(result: Result) -> Result:
    """The run as an evaluation of today leaves it."""
    (name,) = result.splits
    scored = result.splits[name]
    assert scored.references is not None
    assert scored.sources is not None
    words = {
        side: {word: WordFacts(len(word), 2) for line in lines for word in line.split()}
        for side, lines in (("source", scored.sources), ("target", scored.references))
    }
    forced = [
        ForcedReference(line, [-1.0] * len(text.split()), [(0, 0)], [0.5, 0.9], [True, False])
        for line, text in enumerate(scored.references, 1)
    ]
    measures = [{"line": line, "unattended": line % 2, "cut": False, "entropy": 1.0, "coverage": 0.5,
                 "monotonicity": 75.0, "end_weight": 2.5}
                for line in range(1, len(scored.references) + 1)]  # fmt: skip
    scored = scored._replace(words=words, forced=forced, measures=measures, source_language="en")
    return result._replace(splits={name: scored})


@pytest.fixture(scope="module")
def whole() -> Comparison:
    runs = [*runs_of(OLD, 0.8), *runs_of(NEW, 0.7), *runs_of(PLAIN, 0.5, weights=False)]
    return compare([known(run) for run in runs], trials=50)


def headings(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Heading)]


def test_the_sections_stand_in_their_order(whole: Comparison) -> None:
    blocks = report.report(whole, 1)
    assert headings(blocks)[:18] == [
        "Scores on test",
        "Length of the translations",
        "Attention of the translations",
        "Sentences on which the variants differ most",
        "Pictures of the scores",
        "Learning curves",
        "Gains, losses and random sentences",
        "Attention maps",
        "Failures",
        "Word F1 by training frequency",
        "Word F1 by number of pieces",
        "Recall by source word",
        "Salient n-grams",
        "Recall by place in the sentence",
        "Likelihood of the references by training frequency",
        "Calibration",
        "Scores of single sentences",
        "Kinds of sentences",
    ]
    assert headings(blocks)[18] == "What it costs"
    assert headings(blocks)[-1] == "Sentences"
    # The first screen has no picture, and three sentences with four rows each.
    first = blocks[: blocks.index(Heading("Pictures of the scores"))]
    assert not any(isinstance(block, Picture | Interactive) for block in first)
    tables = [block for block in first if isinstance(block, Table) and block.header[0].startswith("line ")]
    assert [len(table.rows) for table in tables] == [4, 4, 4]


def test_measures_of_the_attention_and_places_in_the_sentence_have_their_columns(whole: Comparison) -> None:
    tables = {block.header[0]: block for block in report.report(whole, 0) if isinstance(block, Table)}
    means = tables["mean of a sentence"]
    assert means.header[-2:] == ["monotonicity, %", "weight on the end, %"]
    assert means.rows[0][-2:] == ["75.00 (75.00 to 75.00)", "2.50 (2.50 to 2.50)"]
    assert {"place in the reference", "word of the reference"} <= tables.keys()


def test_an_earlier_evaluation_leaves_out_what_it_did_not_measure(found: Comparison) -> None:
    there = headings(report.report(found, 0))
    for text in ("Word F1", "Recall by source word", "Likelihood", "Calibration", "Attention of the translations"):
        assert not any(heading.startswith(text) for heading in there)
    assert {"Failures", "Salient n-grams", "Recall by place in the sentence", "Kinds of sentences"} <= set(there)


def test_every_link_leads_to_a_sentence_with_all_translations(whole: Comparison) -> None:
    blocks = report.report(whole, 0)
    page = as_html(blocks, "t")
    anchors = re.findall(r'id="line-(\d+)"', page)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#line-(\d+)"', page)) == set(anchors)
    (listed,) = (block for block in blocks if isinstance(block, Sentences))
    (points,) = (block for block in blocks if isinstance(block, Scatter))
    assert set(points.lines) <= {sentence.line for sentence in listed.sentences}
    sources, references = texts()
    for line, rows in listed.sentences:
        assert [row[:2] for row in rows[:2]] == [("source", sources[line - 1]), ("reference", references[line - 1])]
        names = ", ".join(row[0] for row in rows[2:])
        assert sorted(names.split(", ")) == sorted(variant.label for variant in whole.variants)


@pytest.mark.long
def test_sixteen_variants_make_a_page_of_a_sensible_size() -> None:
    runs = [known(run) for number in range(16) for run in runs_of({**OLD, "decoder.size": number}, 0.5, seeds=1)]
    comparison = compare(runs, trials=20)
    blocks = report.report(comparison, 0)
    page = as_html(blocks, "t")
    assert len(page) < 2_000_000
    (table,) = (block for block in blocks if isinstance(block, Table) and block.header[0] == "% of translations")
    assert len(table.rows) == 16
    first = blocks[: blocks.index(Heading("Pictures of the scores"))]
    assert (
        sum(len(block.rows) for block in first if isinstance(block, Table) and block.header[0].startswith("line")) == 12
    )


def test_slices_of_a_user(whole: Comparison) -> None:
    sources, _ = texts()
    slicing = Slicing("<b>|a", ["<script>alert(1)</script>"] * 40 + [""] * (len(sources) - 40))
    blocks = report.report(whole, 0, slicing)
    place = blocks.index(Heading("Kinds of sentences"))
    table, caption = blocks[place + 1], blocks[place + 2]
    assert isinstance(table, Table)
    assert table.header == ["kind of source", "all", "regex <b>|a", "label <script>alert(1)</script>"]
    assert table.rows[-1] == ["sentences", "60", str(sum("a" in line for line in sources)), "40"]
    assert isinstance(caption, Lines)
    assert "numbers (0)" in caption.lines[1]
    assert "<script>alert" not in as_html(blocks, "t")


def test_one_variant_has_no_rival(whole: Comparison) -> None:
    alone = compare(whole.variants[0].runs, trials=20)
    blocks = report.report(alone, 0)
    assert not any(isinstance(block, Scatter) for block in blocks)
    assert "Gains, losses and random sentences" not in headings(blocks)
    assert "Failures" in headings(blocks)
