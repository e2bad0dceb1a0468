"""Lines with HTML tags, translated by a translator that turns the words of a line round."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from nmt.alignment.linker import Linker
from nmt.alignment.tagged_lines import plain_text, translate_tagged
from nmt.system.errors import UserError
from nmt.text.spans import Span
from nmt.translation.request import Request
from nmt.translation.translator import empty
from nmt.translation.types import Translation


def _spans(text: str) -> list[Span | None]:
    return [*(match.span() for match in re.finditer(r"\S+", text)), None]


def turned(request: Request, attends: bool = True) -> Translation:
    """The words of a request in upper case and the other order; a word is a piece."""
    words = request.text.split()
    if not words:
        return empty(request.text)
    text = " ".join(words[::-1]).upper()
    ours, theirs = _spans(request.text), _spans(text)
    weights = np.eye(len(words) + 1, dtype=np.float32)[[*range(len(words))[::-1], len(words)]][None]
    pieces = [*words, "</s>"], [*text.split(), "</s>"]
    return Translation(request.text, text, -1.0, -2.0, *pieces, ours, theirs, weights if attends else None)._replace(
        notes=[f"note on {request.text}"] if "!" in request.text else []
    )


def translated(lines: Sequence[str], attends: bool = True) -> list[Translation]:
    asked: list[str] = []

    def translate(requests: list[Request]) -> list[list[Translation]]:
        asked.extend(request.text for request in requests)
        return [[turned(request, attends), empty("")] for request in requests]

    results = translate_tagged([Request(line) for line in lines], translate, Linker())
    assert not any("<b>" in text for text in asked)
    assert all(len(ranked) == 1 for ranked in results)
    return [ranked[0] for ranked in results]


@pytest.mark.parametrize(
    ("line", "plain", "text", "tagged"),
    [
        ("one two", "one two", "TWO ONE", "TWO ONE"),
        (" one  two ", " one  two ", "TWO ONE", "TWO ONE"),  # without tags: as ever
        ("", "", "", ""),
        (" ", " ", "", ""),
        ("---", "---", "---", "---"),
        ("one <b>two</b> three", "one two three", "THREE TWO ONE", "THREE <b>TWO</b> ONE"),
        ("<p>one two</p> <p> three <i>four</i> </p>", "one two three four", "TWO ONE FOUR THREE",
         "<p>TWO ONE</p> <p> <i>FOUR</i> THREE </p>"),
        ("<hr>", "", "", "<hr>"),
        ("&#10;one&#x0a <b>two</b>", "one two", "TWO ONE", " <b>TWO</b> ONE"),
        ("a &amp; <u>b!</u>", "a & b!", "B! & A", "<u>B!</u> &amp; A"),
    ],
)  # fmt: skip
def test_lines_keep_their_tags(line: str, plain: str, text: str, tagged: str) -> None:
    assert plain_text(line) == plain
    (translation,) = translated([line])
    assert (translation.source, translation.text, translation.tagged) == (plain, text, tagged)
    assert list(translation.notes) == (["note on a & b!"] if "!" in line else [])


def test_lines_of_several_parts_stay_in_their_order() -> None:
    lines = ["<li>a b<li>c d", "e f", "<br>", "<li>g<li><b>h</b> i"]
    expected = ["<li>B A<li>D C", "F E", "<br>", "<li>G<li>I <b>H</b>"]
    assert [each.tagged for each in translated(lines)] == expected


def test_without_attention_words_are_linked_in_their_order() -> None:
    assert translated(["one <b>two</b> three"], attends=False)[0].tagged == "THREE <b>TWO</b> ONE"
    assert translated(["<b>one</b> two"], attends=False)[0].tagged == "<b>TWO</b> ONE"


def test_a_character_reference_that_is_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="character reference"):
        translated([f"&#{'9' * 5000};"])
