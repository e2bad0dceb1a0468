"""Links from anywhere against gold links: `nmt.align links=FILE gold=FILE`."""

import re
from pathlib import Path

import pytest

from tests.align.test_align import rates
from tests.small import Capture, call, write_lines


def test_links_from_anywhere_by_hand(here: Path, capfd: Capture) -> None:
    """Three links, of which two are sure and one is possible, of three sure ones: AER 1 - (2 + 3) / (3 + 3)."""
    links = write_lines(here / "links", ["1-1 2-2", "", "1-2"])
    path = write_lines(here / "gold", ["0001 1 1 S", "0001 2 2 P", "0003 1 2 S", "0003 2 1 S", "3 3 0"])
    assert call("align", f"links={links}", f"gold={path}", "links_base=1", "gold_base=1") == 0
    out = capfd.readouterr().out
    assert re.search(r"16\.7 % +100\.0 % +66\.7 %", out)
    assert "(3 sentence pairs; gold: 3 sure links, 4 with the possible ones)" in out


@pytest.mark.parametrize(("pair", "printed"), [("enfr", "4.1"), ("roen", "20.7")])
def test_published_error_rates_through_the_command(pair: str, printed: str, corpora: Path, capfd: Capture) -> None:
    folder = corpora / "alignments" / pair
    line = [f"links={folder / 'awesome-align.pharaoh'}", f"gold={folder / 'gold.sp'}"]
    assert call("align", *line, "gold_base=1") == 0
    out, err = capfd.readouterr()
    assert list(rates(out).values()) == [printed]
    assert err == ""
    assert call("align", *line) == 0
    assert "If words are counted from 1, give gold_base=1" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("deen/gold.sp", ("deen/text.de", "deen/text.en"), []),
        *(
            (
                f"multi30k_silver/{split}.{source}-en.sp",
                (f"../multi30k/{split}.{source}.gz", f"../multi30k/{split}.en.gz"),
                ["words=moses", f"languages=[{source},en]"],
            )
            for split, source in (("val", "fr"), ("test_2016_flickr", "de"))
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_links_of_real_text_fit_its_words(
    name: str, text: tuple[str, str], more: list[str], corpora: Path, capfd: Capture
) -> None:
    """Gold is perfect against itself, and every link names words that the raw text has when they are cut so."""
    folder = corpora / "alignments"
    sides = [f"source={folder / text[0]}", f"target={folder / text[1]}"]
    assert call("align", f"links={folder / name}", f"gold={folder / name}", *sides, *more) == 0
    assert next(iter(rates(capfd.readouterr().out).values())) == "0.0"
