"""Sentences of a text, and what stays between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.sentence_split import has_several, split_sentences

SIGNS = st.text(st.sampled_from(list("aB1 .!?。！।؟…\n\r\t\u2028\u00a0\"'”»)]「」(¿-")), max_size=60)


@given(st.one_of(SIGNS, st.text(max_size=60)), st.sampled_from(["", "en", "de", "zh"]), st.booleans())
def test_sentences_and_spaces_add_up_to_the_text(text: str, language: str, lines_only: bool) -> None:
    found = list(split_sentences(text, language, lines_only))
    assert "".join(sentence + space for sentence, space in found) == text
    assert all(not space or space.isspace() for _, space in found)
    assert all(sentence == sentence.strip() and "\n" not in sentence and "\r" not in sentence for sentence, _ in found)
    assert all(sentence for sentence, _ in found[1:])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "September 28, 2011.|12 dollars.|Monday, 3 May 1999."),
        ("en", "Mr. Smith met J. R. Hart at 5 p.m. in the U.S. Army.|It cost 3.50 dollars.|He left."),
        ("en", '"Why?" he asked.|"Because."|(Then she left.)|Wait... what?!|Yes!|No…|Maybe.'),
        ("en", "1. The first.|2. The second, in room 12.|He has no. 5 and vol. 3."),
        ("en", "It was on the BBC.|See example.com.|It is for us."),
        ("de", "Am 3. Mai 1999 kam Dr. Maier, z. B. mit Prof. Abel.|Er wohnt in Nr. 12."),
        ("", "Am 3. Mai 1999.|Das war gut."),
        ("fr", "Elle travaille dur.|Je suis fatigué.|Où est mon livre ?|Ici !"),
        ("es", "¿Qué?|¡No!|Sí.|Está bien."),
        ("ru", "Сегодня 5 мая.|Привет!|Как дела?"),
        ("zh", "你好。|再见！|他说：“是吗？”然后走了。|好的"),
        ("ja", "「はい。」と言った。|それはペンです。"),
        ("hi", "मैं घर जाता हूँ।|वह आता है।"),
        ("ar", "هل أنت بخير؟|نعم.|شكرا."),
        ("am", "ሰላም።|ደህና ነኝ።"),
        ("de", "Das Haus .|Der Hund ."),
        ("de", "der Käfer löscht 12 Züge.|er trägt z. B. Äpfel.|hört sie zu?|ja!"),
        ("en", "'why?' he asked.|because.|It cost approx. five dollars."),
    ],
)
def test_sentences_end_where_readers_end_them(language: str, text: str) -> None:
    spaced = "" if language in ("zh", "ja") else " "
    assert [sentence for sentence, _ in split_sentences(text.replace("|", spaced), language)] == text.split("|")


def test_lines_only_leaves_lines_whole() -> None:
    found = list(split_sentences("  One. Two.\r\n\r\nThree。Four.\n", lines_only=True))
    assert found == [("", "  "), ("One. Two.", "\r\n\r\n"), ("Three。Four.", "\n")]


@pytest.mark.parametrize("unit", ["a", ".", "。", " ", '"', "a.", "a. ", "。)", "B. ", "\n"])
def test_long_texts_take_linear_time(unit: str) -> None:
    """A quadratic step would take hours."""
    text = unit * 300_000
    assert sum(len(sentence) + len(space) for sentence, space in split_sentences(text + "x")) == len(text) + 1


@given(text=st.text(alphabet='aB1 .!?")\u3002\n\t\u2028-', max_size=12), language=st.sampled_from(["en", "de"]))
def test_several_sentences_are_those_that_are_split(text: str, language: str) -> None:
    assert has_several(text, language) == (sum(bool(sentence) for sentence, _ in split_sentences(text, language)) > 1)
