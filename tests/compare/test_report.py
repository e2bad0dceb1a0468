"""The report: what stands in it, and in its forms."""

import re
from html.parser import HTMLParser

import pytest

from nmt.compare import report
from nmt.compare.estimates import Estimate
from nmt.compare.grid import Grid
from nmt.compare.labels import telling
from nmt.compare.results import Alignment
from nmt.compare.systems import SYSTEM
from nmt.compare.variants import Comparison, compare
from nmt.compare.verdict import verdict
from nmt.viewer.blocks import Heading, Lines, Scatter, Table, as_html, as_markdown, file_name, pictures
from tests.compare.runs import NEW, OLD, PLAIN, result, runs_of, study

pytestmark = pytest.mark.long


def test_the_settings_that_differ_are_a_row_a_variant_in_words() -> None:
    known = study()
    runs = [result(name, 1, {**own, "encoder.size": 8}, 0.7) for name, own in known]
    blocks = report.report(compare(runs, trials=20), 0)
    place = blocks.index(Heading("Settings in which the variants differ"))
    table = blocks[place + 1]
    assert isinstance(table, Table)
    # The summary and the entropy are one choice's own, which never vary; encoders are all alike.
    assert set(table.header) == {
        *("variant", "decoder", "decoder.size", "attention/score", "attention/window", "attention.window.radius"),
        *("attention/read", "attention.heads", "attention.coverage"),
    }
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == [name for name, _ in known]
    assert rows["luong general local_m 4"] == {
        "variant": "luong general local_m 4",
        "decoder": "luong",
        "decoder.size": "9",
        "attention/score": "general",
        "attention/window": "local_m",
        "attention.window.radius": "4",
        "attention/read": "soft",
        "attention.heads": "1",
        "attention.coverage": "false",
    }
    assert rows["no attention"]["attention/score"] == ""
    assert "nmt." not in str(table)
    # What only one has stays where no choice brings it along.
    lone = compare([result("a", 1, {**OLD, "x": 1}, 0.7), result("b", 1, OLD, 0.7)], trials=20)
    assert telling([own.runs[0].settings for own in lone.variants], lone.differing) == ["x"]


def lines_of(found: Comparison) -> str:
    """All paragraphs of a report."""
    return "\n".join(line for block in report.report(found, 0) if isinstance(block, Lines) for line in block.lines)


def test_runs_without_error_rates_are_named() -> None:
    measured = {"gold-1": Alignment("gold", 9, {"saliency": 20.0}, None, "")}
    runs = [*runs_of(OLD, 0.7, 2), *runs_of(NEW, 0.8, 2)]
    whole = [run._replace(aligned=measured) for run in runs]
    assert "Not measured" not in lines_of(compare(whole, trials=20))
    other_program = result("marian-1", 1, {SYSTEM: "marian"}, 0.7)
    found = compare([*whole[:-1], runs[-1], other_program], trials=20)
    assert f"Not measured on gold, so that their variants are missing above: {runs[-1].name}. " in lines_of(found)
    (table,) = (block for block in report.report(found, 0) if isinstance(block, Table) and "gold" in block.header[0])
    assert [row[0] for row in table.rows] == ["bahdanau"]


def test_costs_of_a_disturbed_training_are_called_so() -> None:
    steady, shaken = runs_of(OLD, 0.7, 2)
    history = [{**entry, "train_tokens_per_second": 900.0} for entry in steady.history]
    steady = steady._replace(history=history)
    slow = [{**entry, "train_tokens_per_second": speed} for entry, speed in zip(history, (900, 590, 850), strict=True)]
    assert "probably trained" not in lines_of(compare([steady, shaken._replace(history=history)], trials=20))
    found = compare([steady, shaken._replace(history=slow)], trials=20)
    assert f"between validations: {shaken.name} (590 to 900 tokens/s). Do not compare these costs." in lines_of(found)


def test_bold_are_the_best_and_what_is_not_significantly_different() -> None:
    runs = [*runs_of(OLD, 0.8), *runs_of(NEW, 0.81), *runs_of(PLAIN, 0.5)]
    found = compare(runs, trials=20)
    split = found.splits[0]
    assert len(split.near) == 1
    table = report.scores_table(found, split)
    bleu, chrf = table.header.index("BLEU"), table.header.index("chrF")
    assert sorted(at for at in table.best if at[1] == bleu) == [(0, bleu), (1, bleu)]
    assert len([at for at in table.best if at[1] == chrf]) == 1, "the other columns have no test"


def test_the_baseline_that_nobody_chose_is_said_in_the_terminal(found: Comparison) -> None:
    assert "The baseline is bahdanau (the first run, because baseline= is not set; " in report.as_text(found)
    assert "The baseline is" not in report.as_text(found._replace(baseline_chosen=True))


class Page(HTMLParser):
    """Checks that elements are closed in their order, and collects what a browser would load."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loads: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_and_asks_for_nothing(found: Comparison) -> None:
    odd = found._replace(apart=[("<script>alert(1)</script>", "a & b")])
    text = as_html(report.report(odd, 2), "what <we> found")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert not {"iframe", "object", "form"} & set(page.seen)
    assert page.seen.count("script") == 3, "the viewer, its data, and those of the points"
    assert page.seen.count("link") == 1
    assert len(page.loads) > 5
    assert all(load.startswith(("data:image/png;base64,", "data:,", "#part-", "#line-")) for load in page.loads)
    assert set(re.findall(r"https?:[^\"' )]*", text)) == {"http://www.w3.org/2000/svg"}, "the name of SVG"
    assert "@import" not in text
    assert "url(" not in text
    assert "script-src 'sha256-" in text
    still = [block for block in report.report(odd, 0) if not isinstance(block, Scatter)]
    assert "<script" not in as_html(still, "t"), "neither viewer nor points: nothing may run"
    assert "prefers-color-scheme: dark" in text
    body = " ".join(page.text)
    # The verdict is the first thing in the page, before any picture or table.
    assert body.index(verdict(odd)[0]) < body.index("Scores on test")
    assert text.index('class="lead"') < text.index("<img")
    assert "<script>alert(1)</script>" in body
    for part in ("no attention", "n.s.", "worse", "Holm", "decoder.size", "Attention maps", "perplexity"):
        assert part in body


def test_the_title_counts_in_words(found: Comparison) -> None:
    assert report.title(found) == "3 variants, 9 runs, on test"
    (split,) = found.splits
    one = found.variants[0]
    single = found._replace(variants=[one._replace(runs=one.runs[:1])], splits=[split, split._replace(name="long")])
    assert report.title(single) == "1 variant, 1 run, on test, long"


def test_the_markdown_names_its_pictures(found: Comparison) -> None:
    blocks = report.report(found._replace(apart=[("a|b", "line\nbreak")]), 1)
    text = as_markdown(blocks, "title")
    assert text.startswith(f"# title\n\n{verdict(found)[0]}\n")
    names = [file_name(picture.name) for picture in pictures(blocks)]
    assert len(names) == len(set(names)) == 3
    for name in names:
        assert f"(<pictures/{name}>)" in text
    assert "| a\\|b | line break |" in text
    for line in text.splitlines():
        if line.startswith("| bahdanau"):
            assert line.endswith(" |")


def test_the_terminal_gets_the_verdict_and_the_scores(found: Comparison) -> None:
    text = report.as_text(found._replace(apart=[("x", "why")], notes=["note"]))
    assert text.startswith(verdict(found)[0])
    for part in ("no attention", "n.s.", "left out: x: why", "note"):
        assert part in text


def test_bleu_by_length_has_intervals(found: Comparison) -> None:
    bins = [(1, 5, 40), (6, 10, 30)]
    rows: list[list[Estimate | None]] = [[Estimate(10, 8, 12.25), Estimate(20, 18, 22)]] * 3
    by_length = Grid("source words", ["1-5", "6-10"], "sentences", [40, 30], rows)
    split = found.splits[0]._replace(bins=bins, by_length=by_length)
    blocks = report.report(found._replace(splits=[split]), 0)
    (table,) = (block for block in blocks if isinstance(block, Table) and block.header[0] == "source words")
    assert table.header == ["source words", "1-5", "6-10"]
    cells = ["10.0 (8.0 to 12.2)", "20.0 (18.0 to 22.0)"]
    assert [row[1:] for row in table.rows] == [cells] * 3 + [["40", "30"]]
    alone = split._replace(bins=bins[:1])
    headings = [block.text for block in report.report(found._replace(splits=[alone]), 0) if isinstance(block, Heading)]
    assert not any("source length" in text for text in headings), "one bin is the score of all"
