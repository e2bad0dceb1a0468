"""The built-in text: its files, and the generator of text in other languages."""

import datetime
import re
from decimal import Decimal

import pytest
from babel import Locale
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.builtin import BuiltIn, BuiltInDocuments
from nmt.data.dataset import DataSource, Split
from nmt.system.errors import UserError
from nmt.system.limits import checked
from tests.data.generated import generated

from cldr.locales import Language  # isort: skip
from cldr.meaning import (  # isort: skip
    Compact,
    Field,
    Listing,
    Moment,
    Money,
    Name,
    Pair,
    Percent,
    Phrase,
    Quantity,
    RelativeTime,
    Week,
)

# 21 November 2026 is a Saturday.
DAY = datetime.datetime(2026, 11, 21, 15, 5)
FRANCE = Name("territory", "FR")
LOCALES = ["en", "eu", "hu", "de", "fr", "es", "pt_BR", "tr", "fi", "lt", "ar", "he", "hi", "ja", "zh_Hans", "ko", "vi"]


def say(phrase: Phrase, source: str, target: str) -> Pair:
    """Returns a phrase in two languages, without any choosing of what may be said."""
    said = [Language(Locale.parse(code)).say(phrase) for code in (source, target)]
    return Pair(said[0].text, said[1].text, said[0].fields, said[1].fields)


# Worked by hand: word i of the source - word j of the target. Basque is in the shipped text.
OTHERS = [
    # The year comes first in Hungarian; its months and its units are words as in English.
    ("en", "hu", Moment(DAY, "date full"), "2026. november 21., szombat", "0-3 1-1 2-2 3-0"),
    # An inflected unit stays one field with the direction.
    ("en", "hu", RelativeTime(-5, "hour"), "5 órával ezelőtt", "0-0 1-1 1-2 2-1 2-2"),
    # Words that stand alone: "de" before its field, "m." and "d." behind.
    ("en", "es", Moment(DAY, "date long"), "21 de noviembre de 2026", "0-1 0-2 1-0 2-3 2-4"),
    ("en", "lt", Moment(DAY, "date full"), "2026 m. lapkričio 21 d., šeštadienis", "0-5 1-2 2-3 2-4 3-0 3-1"),
    # One word of Japanese for all of a date, and a unit on both sides of its number.
    ("en", "ja", Moment(DAY, "date full"), "2026年11月21日土曜日", "0-0 1-0 2-0 3-0"),
    ("en", "zh_Hans", Quantity(Decimal(90), "speed-kilometer-per-hour", "long"), "每小时90公里", "0-0 1-0 2-0 3-0"),
    ("en", "zh_Hans", Week(47, DAY, "skeleton yw"), "2026年第47周", "0-0 1-0 2-0 3-0"),
    # "PM" has no word in German and is linked with the hour; white space in numbers separates words.
    ("en", "de", Moment(DAY, "time short"), "15:05", "0-0 1-0"),
    ("en", "fr", Money(Decimal("1234.5"), "EUR", False), "1 234,50 €", "0-0 0-1 0-2"),
    # Arabic says two hours in one word, and its "and" touches the next item.
    ("en", "ar", Quantity(Decimal(2), "duration-hour", "long"), "ساعتان", "0-0 1-0"),
    ("en", "ar", Listing("standard", (FRANCE, Name("language", "fr"))), "فرنسا والفرنسية", "0-0 1-1 2-1"),
    ("en", "tr", Percent(Decimal("12.5")), "%12,5", "0-0"),
    ("en", "de", Compact(Decimal(12_000_000)), "12 Millionen", "0-0 1-1"),
]


@pytest.mark.parametrize(("source", "target", "phrase", "text", "links"), OTHERS)
def test_phrases_and_links_worked_by_hand(source: str, target: str, phrase: Phrase, text: str, links: str) -> None:
    pair = say(phrase, source, target)
    assert (pair.target, pair.links()) == (text, links)
    turned = {tuple(reversed(link.split("-"))) for link in links.split()}
    assert {tuple(link.split("-")) for link in say(phrase, target, source).links().split()} == turned


def test_a_word_of_two_fields_is_linked_for_each() -> None:
    fields = (Field("x", 0, 1), Field("y", 1, 2), Field("z", 3, 4)), (Field("x", 2, 3), Field("y", 0, 1))
    assert Pair("1a b", "c d", *fields).links() == "0-0 0-1"


def test_the_generator_gives_the_shipped_text() -> None:
    """The smaller sets do not depend on the size of the training set."""
    for data, kind, target in ((BuiltIn(), "phrases", "eu"), (BuiltInDocuments(), "documents", "de")):
        lines = generated(kind, target=target, valid=500, test=500 if kind == "phrases" else 300)["test"]
        test = data.read("test")
        assert [pair.source for _, pair, _ in lines] == test.source
        assert [pair.target for _, pair, _ in lines] == test.target
        assert [pair.links() for _, pair, _ in lines] == test.links
        if test.documents is not None:
            assert [document for document, _, _ in lines] == test.documents


def test_splits_share_no_sentence_and_have_the_size_asked_for() -> None:
    corpus = BuiltIn(train_pairs=3000, valid_pairs=200)
    splits = {split: corpus.read(split) for split in corpus.splits()}
    assert {name: len(split.source) for name, split in splits.items()} == {"train": 3000, "valid": 200, "test": 500}
    for side in ("source", "target"):
        sentences = [sentence for split in splits.values() for sentence in getattr(split, side)]
        assert len(set(sentences)) == len(sentences) == 3700
    assert "3,000 / 200 / 500" in corpus.notes()[0]
    turned = 0
    for line in splits["test"].links or ():
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        turned += any(i < k and j > m for i, j in links for k, m in links)
    assert turned > 250, "Basque reverses the order of words"


def test_names_in_the_test_set_occur_in_training() -> None:
    train, test = BuiltIn().read("train").target, BuiltIn().read("test").target
    known = {word for sentence in train for word in re.findall(r"[^\W\d_]+", sentence)}
    words = [word for sentence in test for word in re.findall(r"[^\W\d_]+", sentence)]
    assert sum(word not in known for word in words) <= len(words) / 1000


@pytest.mark.long
@settings(max_examples=12, derandomize=True)
@given(st.sampled_from(LOCALES), st.sampled_from(LOCALES), st.integers(1, 1000))
def test_any_two_locales(source: str, target: str, seed: int) -> None:
    pairs = [pair for _, pair, _ in generated("phrases", source, target, seed, 30)["train"]]
    for pair in pairs:
        words = []
        for text, fields in ((pair.source, pair.source_fields), (pair.target, pair.target_fields)):
            assert text
            assert text == text.strip()
            assert not re.search(r"[^\S ]", text)  # no white space but plain spaces
            assert all(0 <= field.start < field.end <= len(text) for field in fields)
            assert all(text[start:end].strip() == text[start:end] for _, start, end in fields)
            words.append(len(text.split()))
        links = [tuple(map(int, link.split("-"))) for link in pair.links().split()]
        assert links == sorted(set(links)) != []
        assert all(i < words[0] and j < words[1] for i, j in links)
    assert len({pair.source for pair in pairs}) == len({pair.target for pair in pairs}) == 30


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (BuiltIn, {"train_pairs": 0}, "data.train_pairs=0: must be"),
        (BuiltIn, {"valid_pairs": 501}, "data.valid_pairs=501: must be"),
        (BuiltInDocuments, {"test_documents": 2.5}, "data.test_documents=2.5: must be a whole number"),
    ],
)
def test_mistakes_are_named(kind: type[DataSource], settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        checked(kind, settings, "data")()
    with pytest.raises(UserError, match="Did you mean 'test'"):
        BuiltIn().read("tests")


@pytest.fixture(scope="module")
def documents() -> BuiltInDocuments:
    return BuiltInDocuments(train_documents=130, valid_documents=13, test_documents=26)


def test_each_document_is_there_with_every_meaning(documents: BuiltInDocuments) -> None:
    """So a source with the sentences up to N back is there with every translation, but for the first sentence."""
    test = documents.read("test")
    assert test.documents is not None
    assert 26 <= test.documents[-1] + 1 <= 28
    by_rest: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for document in range(test.documents[-1] + 1):
        rows = [row for row, number in enumerate(test.documents) if number == document]
        assert len(rows) == 4
        by_rest.setdefault(tuple(test.source[row] for row in rows[1:]), []).append(tuple(test.target[r] for r in rows))
    assert all(len(set(targets)) == len(targets) > 1 for targets in by_rest.values())


def test_contrasts_are_the_other_meanings(documents: BuiltInDocuments) -> None:
    test, items = documents.read("test"), documents.contrasts("test")
    right: dict[str, set[str]] = {}
    for item in items:
        assert item.distance == item.row % 4 > 0
        right.setdefault(test.source[item.row], set()).add(test.target[item.row])
    for item in items:
        assert {test.target[item.row], *item.wrong} == right[test.source[item.row]]
        assert test.target[item.row] not in item.wrong


def test_the_first_sentence_tells(documents: BuiltInDocuments) -> None:
    """The unit of a first sentence has one translation, which the narrow forms of its document share."""
    train = documents.read("train")
    meaning: dict[str, set[str]] = {}
    for item in documents.contrasts("train"):
        first = item.row - item.distance
        units = [text.partition(" ")[2] for text in (train.source[first], train.target[first], train.target[item.row])]
        meaning.setdefault(units[0], set()).add(units[1])
        assert units[1] == units[2]
    assert all(len(units) == 1 for units in meaning.values())


def test_amounts_are_in_one_split_only(documents: BuiltInDocuments) -> None:
    def narrow(split: str) -> set[str]:
        read: Split = documents.read(split)
        return {read.source[item.row] for item in documents.contrasts(split)}

    train, valid, test = map(narrow, ("train", "valid", "test"))
    assert not train & (valid | test)
    assert not valid & test
