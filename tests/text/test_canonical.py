"""Text that is equal for a reader is equal for a model, and a line that shows nothing is empty."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import UserError
from nmt.text.canonical import canonical, in_original, shows_nothing
from nmt.text.tokenizer import CANONICAL, Vocabulary
from nmt.text.tokenizer_trainer import TokenizerTrainer
from tests.text.test_tokenizer import sentences, vocabulary

#: Marks and what composes, where forms differ; and characters that show nothing.
ODD = [
    chr(code)
    for code in range(0x110000)
    if unicodedata.combining(chr(code)) or unicodedata.decomposition(chr(code)).strip()[:1] not in ("", "<")
]
HANGUL = [chr(code) for code in range(0x1100, 0x1200)]
UNSEEN = ["\u00ad", "\u034f", "\u061c", "\u200b", "\u200e", "\u200f", "\ufeff",
          *map(chr, [*range(0x202A, 0x202F), *range(0x2060, 0x2070)])]  # fmt: skip
KEPT = list("\u200c\u200d\ufe0f\u180b\U000e0067")
LETTERS = st.characters(codec="utf-8", exclude_characters="\n\ufdd0")
TEXT = st.text(st.one_of(st.sampled_from([*ODD, *HANGUL]), st.sampled_from([*UNSEEN, *KEPT]), LETTERS), max_size=9)


@given(TEXT, st.integers(0, 9), st.sampled_from(UNSEEN))
def test_equivalent_texts_are_one(text: str, place: int, unseen: str) -> None:
    once = canonical(text)
    assert once == canonical(once) == canonical(unicodedata.normalize("NFD", text))
    assert once == canonical(text[:place] + unseen + text[place:])
    assert once == unicodedata.normalize("NFC", "".join(char for char in text if char not in UNSEEN))
    assert set(once) & set(KEPT) == set(text) & set(KEPT)


@given(st.lists(TEXT, min_size=1, max_size=3), st.integers(0, 1))
def test_long_text_is_as_short_text(parts: list[str], spaced: int) -> None:
    """What is composed in parts, because it is long, is what the parts are."""
    filled = [part + "x" * 480 + " " * spaced for part in parts]
    assert canonical("".join(filled)) == "".join(map(canonical, filled))


@given(TEXT)
def test_spans_lead_back(text: str) -> None:
    once = canonical(text)
    spans = [span for span in in_original([(at, at + 1) for at in range(len(once))], text) if span is not None]
    assert spans == sorted(spans)
    for (begin, end), char in zip(spans, once, strict=True):
        assert char in canonical(text[begin:end]) or char.isspace() or text[begin - 1].isspace()
    assert in_original([None, (0, 0)], text)[0] is None


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
def test_a_model_reads_equivalent_texts_alike(kind: str) -> None:
    pieces = vocabulary(kind)

    @given(TEXT, st.integers(0, 9))
    def alike(text: str, seed: int) -> None:
        apart = unicodedata.normalize("NFD", text)
        assert pieces.encode([apart]) == pieces.encode([text])
        assert pieces.sample([apart], 0.3, seed) == pieces.sample([text], 0.3, seed)

    alike()


def test_a_word_of_the_original_is_whole() -> None:
    pieces, sentence = vocabulary("char"), "da\u0308 \u200bSchiff\u00adfahrt"
    (tokens,) = pieces.encode([sentence])
    shown = {sentence[slice(*span)] for span in pieces.spans(tokens, sentence) if span}
    assert {"a\u0308", "S", "f"} <= shown
    assert not shown & {"\u200b", "\u00ad", "\u0308"}


def test_training_on_either_form_gives_one_model() -> None:
    text = sentences(60)
    apart = [unicodedata.normalize("NFD", line).replace("e", "e\u00ad") for line in text]
    one, other = (TokenizerTrainer(vocabulary_size=300).train(lines, lines)[0] for lines in (text, apart))
    assert one.fingerprint == other.fingerprint


def test_models_without_the_mark_read_text_as_it_stands() -> None:
    old = TokenizerTrainer(vocabulary_size=300, canonical=False).train(sentences(60), sentences(60))[0].source
    new = Vocabulary(old.model + CANONICAL)
    assert (old.canonical, new.canonical) == (False, True)
    assert old.decode(old.encode(["e\u0301\u200b"])[0]) == "e\u0301\u200b"
    assert new.decode(new.encode(["e\u0301\u200b"])[0]) == "é"
    assert old.fingerprint != new.fingerprint


@given(
    st.text(st.sampled_from([*UNSEEN, *KEPT, *" \t\u00a0\u3000\u2800\u3164\x00\x85\u2028"])), st.sampled_from("aé数.😀")
)
def test_a_line_that_shows_nothing_is_empty(blank: str, shown: str) -> None:
    assert shows_nothing(blank)
    assert not shows_nothing(blank + shown + blank)
    with pytest.raises(UserError, match="The training text is empty"):
        TokenizerTrainer().train([blank], [blank])
