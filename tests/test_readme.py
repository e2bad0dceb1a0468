"""The README: commands that exist, lines that fit a screen, pictures that are there."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_lines_fit_a_screen() -> None:
    assert [line for line in TEXT.splitlines() if len(line) > 100] == []


def test_pictures_and_pages_are_there() -> None:
    named = re.findall(r"\]\(([^)\s]+)\)|`((?:docs|nmt|scripts|configs)/[\w./-]+|[A-Z]+\.md)`", TEXT)
    paths = [first or second for first, second in named]
    assert paths
    assert [path for path in paths if not (README.parent / path).exists()] == []


def test_it_opens_with_a_sentence_a_picture_and_the_two_commands() -> None:
    opening = TEXT.partition("make test")[0]
    assert "![" in opening
    assert "make demo" in opening
    assert len(opening.splitlines()) < 12
