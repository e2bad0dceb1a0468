"""Where pieces stand in their text: every visible character has its pieces, whatever cuts or normalises it."""

import io

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from nmt.text.canonical import canonical
from nmt.text.spans import Span, words_of
from nmt.text.tokenizer import BOS, EOS, UNK, Vocabulary
from nmt.text.tokenizer_trainer import MODEL_TYPES
from tests.text.test_tokenizer import AWKWARD, TEXT, sentences, vocabulary

# Any text, and text of spaces, emoji of several code points, Han, Arabic and letters with marks.
SPACES = [" ", "  ", "\u3000"]
SIGNS = [
    "the",
    "dog",
    "数据",
    "👩\u200d👧",
    "😀",
    "é",
    "e\u0301",
    "\u0316",
    "\u1100\u1161",
    "\u200b",
    "ولد",
    "ﬁ",
    "½",
    "\u2581",
]
MIXED = st.lists(st.sampled_from([*SPACES, *SIGNS]), max_size=8).map("".join)


def check(sentence: str, spans: list[Span | None]) -> None:
    """What holds of the spans of any sentence that was encoded as a whole."""
    shown = [span for span in spans if span is not None]
    assert shown == sorted(shown), "in order"
    covered: set[int] = set()
    for begin, end in shown:
        assert 0 <= begin <= end <= len(sentence)
        assert sentence[begin:end].strip() == sentence[begin:end]
        covered |= set(range(begin, end))
    assert covered >= {at for at, char in enumerate(sentence) if canonical(char) and not char.isspace()}
    words = [word for word in words_of(sentence, spans) if word >= 0]
    assert words == sorted(words)
    assert set(words) <= set(range(len(sentence.split())))


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_visible_character_has_its_pieces(model_type: str) -> None:
    pieces = vocabulary(model_type)

    @given(TEXT | MIXED)
    def holds(sentence: str) -> None:
        (tokens,) = pieces.encode([sentence])
        text, spans = pieces.spell([*tokens, EOS])
        assert text == canonical(sentence)
        assert spans[-1] is None
        check(text, spans)
        assert pieces.spans(tokens, text) == spans[:-1]
        check(sentence, pieces.spans(tokens, sentence))
        # A piece that is no byte shows itself, less its mark and other white space.
        for name, span in zip(pieces.pieces(tokens), spans, strict=False):
            assert span is not None
            if not name.startswith("<0x"):
                expected = name.replace("\u2581", " ").replace("\ufdd0", "\u2581").strip()
                assert text[slice(*span)] == expected

    holds()
    for sentence in AWKWARD:
        (tokens,) = pieces.encode([sentence])
        check(sentence, pieces.spans(tokens, sentence))


@given(TEXT | MIXED, st.integers(0, 9))
def test_pieces_cut_at_random_have_places_too(sentence: str, seed: int) -> None:
    pieces = vocabulary("unigram")
    (tokens,) = pieces.sample([sentence], 0.1, seed)
    check(sentence, pieces.spans(tokens, sentence))


def foreign(normalization: str, byte_fallback: bool) -> Vocabulary:
    """A model that somebody else has trained: it normalises, or lacks letters."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences()),
        model_writer=made,
        vocab_size=330 if byte_fallback else 60,
        hard_vocab_limit=False,
        normalization_rule_name=normalization,
        byte_fallback=byte_fallback,
        minloglevel=2,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    return Vocabulary(made.getvalue())


NORMALISING = foreign("nmt_nfkc", byte_fallback=True)
LACKING = foreign("identity", byte_fallback=False)


def test_normalised_pieces_stand_at_what_they_come_from() -> None:
    sentence = "  the ﬁ  ½ e\u0301 dog "
    (tokens,) = NORMALISING.encode([sentence])
    spans = NORMALISING.spans(tokens, sentence)
    shown = {sentence[slice(*span)] for span in spans if span is not None}
    assert {"ﬁ", "½", "e\u0301"} <= shown
    assert words_of(sentence, spans)[-1] == len(sentence.split()) - 1


@given(MIXED)
def test_whatever_a_model_normalises_places_are_those_of_the_sentence(sentence: str) -> None:
    (tokens,) = NORMALISING.encode([sentence])
    spans = NORMALISING.spans(tokens, sentence)
    check(sentence, spans)


@given(MIXED)
def test_unknown_pieces_stand_for_what_lies_between_known_ones(sentence: str) -> None:
    (tokens,) = LACKING.encode([sentence])
    check(sentence, LACKING.spans(tokens, sentence))


def test_unknown_pieces_by_hand() -> None:
    sentence = "the 龘龘 dog 龘"
    (tokens,) = LACKING.encode([sentence])
    assert tokens.count(UNK) == 2
    spans = LACKING.spans(tokens, sentence)
    assert [span for token, span in zip(tokens, spans, strict=True) if token == UNK] == [(4, 6), (11, 12)]
    assert sorted(set(words_of(sentence, spans))) == [0, 1, 2, 3]


def test_the_beginning_of_a_sentence_has_the_same_places() -> None:
    for pieces, sentence in ((vocabulary("unigram"), "the dog 数据 runs"), (NORMALISING, " ½ the dog 数据 runs")):
        (tokens,) = pieces.encode([sentence])
        assert pieces.spans(tokens[:4], sentence) == pieces.spans(tokens, sentence)[:4]


def test_words_of_spans_by_hand() -> None:
    #                    a word mark, "a", what lies in the second word, nothing before a space, the end, no text
    assert words_of("a  dog", [(0, 0), (0, 1), (4, 6), (2, 2), (6, 6), None]) == [0, 0, 1, -1, -1, -1]
    assert words_of("", [(0, 0), None]) == [-1, -1]
    pieces = vocabulary("unigram")
    (tokens,) = pieces.encode(["the dog"])
    assert pieces.words([BOS, *tokens, EOS])[0] == -1


def test_runs_of_bytes_by_hand() -> None:
    pieces = vocabulary("char")
    byte = {name: token for token, name in enumerate(pieces.pieces(range(pieces.size)))}
    # half a character | a, the three bytes of U+20AC | a, one and a half characters
    names = ["<0xE2>", "a", "<0xE2>", "<0x82>", "<0xAC>", "a", "<0xC3>", "<0xA9>", "<0xE2>", "<0x82>"]
    text, spans = pieces.spell([byte[name] for name in names])
    assert text == "\ufffda\u20aca\u00e9\ufffd"
    assert spans == [(0, 1), (1, 2), (2, 3), (2, 3), (2, 3), (3, 4), (4, 5), (4, 5), (5, 6), (5, 6)]


@pytest.mark.parametrize("pieces", [vocabulary("unigram"), NORMALISING, LACKING], ids=["as it is", "normal", "lacking"])
def test_a_line_of_many_letters_has_the_places_of_its_parts(pieces: Vocabulary) -> None:
    part, count = "the \u9f98 dog ", 20_000
    (tokens,) = pieces.encode([part])
    spans = pieces.spans(tokens, part)
    (many,) = pieces.encode([part * count])
    visible = [span for span in spans if span is not None and span[0] < span[1]]
    found = [span for span in pieces.spans(many, part * count) if span is not None and span[0] < span[1]]
    last = (count - 1) * len(part)
    assert found[: len(visible)] == visible
    assert found[-len(visible) :] == [(begin + last, end + last) for begin, end in visible]
