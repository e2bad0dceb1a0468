"""Runs whose attention is trained towards word links."""

from pathlib import Path

import pytest

from tests.align.test_align import rates
from tests.small import call, refusal, words, write_lines

Capture = pytest.CaptureFixture[str]


pytestmark = pytest.mark.long


def test_guided_training_teaches_its_links(text: Path, trained: Path, here: Path, capfd: Capture) -> None:
    """Attention of its own accord goes from word n to word n; here it is told to go the other way, however cut."""
    rows = [len(line.split()) for line in (text / "train.de").read_text(encoding="utf-8").splitlines()]
    links = [" ".join(f"{at}-{count - 1 - at}" for at in range(count)) for count in rows]
    named = f"data.train_links={write_lines(here / 'links', links)}"
    budget = ["trainer.steps=200", "trainer.validate_every=100", "tokenizer.sampling=0.3"]
    assert call("train", *words(text, here, "name=told", named, "trainer.guided_alignment=1", *budget)) == 0
    counts = [len(line.split()) for line in (text / "test.de").read_text(encoding="utf-8").splitlines()]
    turned = write_lines(here / "gold", [" ".join(f"{at}-{count - 1 - at}" for at in range(count)) for count in counts])
    found = {}
    for run in (trained, here / "told"):
        capfd.readouterr()
        assert call("align", f"run={run}", f"gold={turned}", "shift=0") == 0
        found[run.name] = float(rates(capfd.readouterr().out)["attention, shift 0"])
    assert found["told"] < 15 < found["numbers"]


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (["trainer.guided_alignment=1"], ["needs word links", "data.train_links=FILE", "text-de-en"]),
        (["trainer.guided_alignment=-1"], ["trainer.guided_alignment=-1: must be at least 0"]),
        (["data.train_links={here}/links"], ["links has 2 lines and the text has 300 lines"]),
        (["data.train_links={here}/nowhere"], ["There is no file", "nowhere"]),
        (["data.train_links={here}/far"], ["far, sentence pair 300: the link 9-9", "word 9 of the source"]),
        (["data.train_links={here}/bad"], ["bad, line 7: '0:0' is not a word link"]),
        (
            ["data.train_links={here}/good", "trainer.guided_alignment=1", "decoder=none"],
            ["trainer.guided_alignment needs attention", "decoder=none has none"],
        ),
    ],
    ids=lambda value: value[-1] if "=" in value[-1] else "",
)
def test_a_guided_training_that_cannot_be(
    more: list[str], parts: list[str], here: Path, text: Path, capfd: Capture
) -> None:
    for name, lines in (
        ("links", ["0-0", "0-0"]),
        ("far", [*["0-0"] * 299, "0-0 9-9"]),
        ("bad", [*["0-0"] * 6, "0-0 0:0", *["0-0"] * 293]),
        ("good", ["0-0"] * 300),
    ):
        write_lines(here / name, lines)
    filled = [word.format(here=here) for word in more]
    message = refusal(capfd, here, "train", *words(text, here, "name=a", "trainer.steps=2", *filled))
    for part in parts:
        assert part in message
