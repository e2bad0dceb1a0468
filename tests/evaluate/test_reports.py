"""The report of an evaluation: one file with every sentence, whose data are those of the run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.small import call, write_lines


def data_of(page: str) -> Any:
    """The data of the viewer of a page."""
    found = re.search(r'<script type="application/json" id="sentences-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def report_of(run: Path, here: Path, *more: str) -> str:
    """The report of three lines, one of which would end a script."""
    source = write_lines(here / "in.de", ["eins zwei drei", "</script><b>rot</b> haus", "blau"])
    reference = write_lines(here / "in.en", ["one two three", "</script><b>red</b> house", "blue"])
    words = [f"run={run}", f"source={source}", f"reference={reference}", f"output={here / 'out'}", *more]
    assert call("evaluate", *words, "device=cpu", "threads=1") == 0
    (page,) = (here / "out").glob("*/report.html")
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["trained", pytest.param("transformer", marks=pytest.mark.long)])
def test_a_report_has_every_sentence(kind: str, request: pytest.FixtureRequest, here: Path) -> None:
    page = report_of(request.getfixturevalue(kind), here, "pictures=1")
    data = data_of(page)
    assert [row["line"] for row in data["corpus"]] == [1, 2, 3]
    assert data["corpus"][1]["source"] == "</script><b>rot</b> haus"
    assert {"chrf", "entropy", "coverage", "repetition", "log_prob"} <= set(data["corpus"][0])
    first, second, _ = (sentence["translations"][0]["translation"] for sentence in data["sentences"])
    hypothesis, plain = first["hypotheses"][0], second["hypotheses"][0]
    assert hypothesis["text"] == data["corpus"][0]["translation"]
    assert first["beam"]["nodes"]
    assert hypothesis["stages"]
    assert hypothesis["pieces"][0]["alternatives"]
    assert second["beam"] is plain["stages"] is None
    heads, rows, columns = plain["weights"]["cross"]["shape"]
    assert (heads, rows, columns) == (1, len(plain["pieces"]), len(second["source"]["pieces"]))
    assert page.count("</script>") == 2, "the text ended no script"
    assert (kind == "transformer") == (hypothesis["weights"]["encoder"] is not None)


def test_a_model_without_attention_has_a_report(unattentive: Path, here: Path) -> None:
    data = data_of(report_of(unattentive, here))
    assert all(row.keys() >= {"chrf", "log_prob"} and "entropy" not in row for row in data["corpus"])
    assert len(data["sentences"]) == 3


def test_without_pictures_there_is_no_report(trained: Path, here: Path) -> None:
    source = write_lines(here / "in", ["eins"])
    assert call("evaluate", f"run={trained}", f"source={source}", f"reference={source}", f"output={here / 'out'}",
                "pictures=0", "device=cpu", "threads=1") == 0  # fmt: skip
    assert not list((here / "out").glob("*/report.html"))
