"""`nmt.evaluate hypotheses=FILE`: scores of another program's translations."""

from pathlib import Path

import pytest

from tests.small import Capture, call, write_lines


@pytest.fixture
def text(here: Path) -> list[str]:
    write_lines(here / "source", ["ein Hund läuft schnell nach Hause", "", "zwei Katzen schlafen auf dem Dach"])
    write_lines(here / "reference", ["a dog runs home quickly now", "", "two cats sleep on the roof"])
    write_lines(here / "short", ["a dog"])
    return ["source=source", "reference=reference"]


def test_a_file_is_scored(text: list[str], capfd: Capture) -> None:
    assert call("evaluate", "hypotheses=reference", *text) == 0
    row = capfd.readouterr().out.splitlines()[1:3]
    assert any("100.00" in line and "reference" in line for line in row)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["hypotheses=short", "source=source", "reference=reference"], "short"),
        (["hypotheses=none", "source=source", "reference=reference"], "none"),
        (["hypotheses=short"], "hypotheses= scores translations of another program"),
        (["hypotheses=short", "run=a", "source=source", "reference=reference"], "leave out run="),
        (["hypotheses=short", "source=source", "reference=reference", "output=out"], "leave out output="),
    ],
)
@pytest.mark.usefixtures("text")
def test_mistakes_name_the_file_or_the_setting(line: list[str], message: str, capfd: Capture) -> None:
    assert call("evaluate", *line) == 1
    assert message in capfd.readouterr().err.splitlines()[-1]


def test_files_in_a_legacy_encoding(here: Path, capfd: Capture) -> None:
    lines = {"source": "fünf zwei\neins\n", "reference": "größer zwei drei vier\none\n"}
    for name, text in lines.items():
        (here / name).write_bytes(text.encode("cp1252"))
    line = [f"source={here / 'source'}", f"reference={here / 'reference'}"]
    alone = ["evaluate", f"hypotheses={here / 'reference'}", *line]
    assert call(*alone, "encoding=cp1252") == 0
    assert "100.00" in capfd.readouterr().out
    assert call(*alone) == 1
    assert "not valid UTF-8" in capfd.readouterr().err
    assert call(*alone, "encoding=latin77") == 1
    assert "encoding=latin77" in capfd.readouterr().err
