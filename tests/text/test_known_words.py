"""The words of a training text, and those that another text has beside them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import UserError
from nmt.text import known_words
from nmt.text.known_words import KnownWords, UnseenCount, load_known_words

LINES = ["Ein Hund rennt im Jahr 2011.", "Fu\u00dfball, cafe\u0301", "हिन्दी भाषा", "我爱你。", "สวัสดี"]


def known(lines: list[str]) -> KnownWords:
    found = KnownWords.of(lines)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "unseen"),
    [
        ("ein HUND, im jahr 1999!", []),  # whatever the case; numbers are no words
        ("FUSSBALL caf\u00e9 Fu\u00df\u00adball", []),  # the same to a reader
        ("Die Katze rennt.", ["Die", "Katze"]),
        ("हिन्दी", []),
        ("हिन्दु", ["हिन्दु"]),  # marks belong to their letter
        ("你爱我 X", ["X"]),  # characters are words where no spaces are
        ("我恨你", ["恨"]),
        ("", []),
        ("3,50 € … 🙂", []),
        ("Hund\ud800x", ["x"]),
    ],
)
def test_words_that_training_never_had(text: str, unseen: list[str]) -> None:
    assert [text[begin:end] for begin, end in known(LINES).unseen(text)] == unseen


@given(st.lists(st.text(max_size=30), max_size=5))
def test_no_word_of_the_text_itself_is_unseen(lines: list[str]) -> None:
    words = known(lines)
    assert [words.unseen(line) for line in lines] == [[] for _ in lines]


def test_words_are_kept_in_a_small_file(tmp_path: Path) -> None:
    path = tmp_path / "words.safetensors"
    assert load_known_words(path) is None
    many = known([" ".join(f"{chr(97 + at // 26 // 26)}{chr(97 + at // 26 % 26)}{chr(97 + at % 26)}"
                           for at in range(10_000))])  # fmt: skip
    (many | known(LINES)).save(path)
    assert path.stat().st_size < 45_000
    loaded = load_known_words(path)
    assert loaded is not None
    assert len(loaded) == len(many | known(LINES)) == 10_014, 'both have "ein"'
    assert loaded.unseen("aaa Hund Katze") == [(9, 14)]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"words\.safetensors is damaged"):
        load_known_words(path)


def test_a_text_of_very_many_words_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_words, "MOST", 3)
    assert KnownWords.of(["a b", "b c"]) is not None
    assert KnownWords.of(["a b", "c d"]) is None
    assert KnownWords(np.array([], np.uint32)).unseen("ab") == [(0, 2)]


def test_all_lines_have_one_note() -> None:
    count = UnseenCount(known(LINES))
    count.add(["Ein Hund", "Eine Katze", "Katze und Maus, Vogel, Fisch, Ente"])
    assert [*count.note()] == [
        "7 different words are not in the training text, in 2 lines: Eine, Katze, und, Maus, Vogel, .... "
        "The model guesses them from their parts."
    ]
    assert [*count.note()] == [], "they are said once"
    count.add(["Katze"])
    assert [*count.note()] == ["1 word is not in the training text: Katze. The model guesses it from its parts."]
    count = UnseenCount(None)
    count.add(["Katze"])
    assert [*count.note()] == [], "of a run that kept no words"
