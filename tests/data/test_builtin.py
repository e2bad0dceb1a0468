"""The built-in corpus: what it says, which words it links, and what its splits keep apart."""

import datetime
import re
from decimal import Decimal

import pytest
from babel import Locale
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.builtin import BuiltIn, Pair, versions, word_links
from nmt.data.builtin.locales import Language, MissingError
from nmt.data.builtin.meaning import (
    Compact,
    Field,
    Interval,
    Listing,
    Meeting,
    Moment,
    Money,
    Name,
    Percent,
    Phrase,
    Quantity,
    RelativeTime,
    Remark,
    Week,
)
from nmt.data.builtin.phrases import Phrases
from nmt.errors import UserError
from nmt.limits import checked
from tests.catalogue import thinned

# 21 November 2026 is a Saturday.
DAY = datetime.datetime(2026, 11, 21, 15, 5)
FRANCE = Name("territory", "FR")
LOCALES = ["en", "eu", "hu", "de", "fr", "es", "pt_BR", "tr", "fi", "lt", "ar", "he", "hi", "ja", "zh_Hans", "ko", "vi"]


def say(phrase: Phrase, source: str, target: str) -> Pair:
    """Returns a phrase in two languages, without any choosing of what may be said."""
    said = [Language(Locale.parse(code)).say(phrase) for code in (source, target)]
    return Pair(said[0].text, said[1].text, said[0].fields, said[1].fields)


def quoted(text: str, fields: tuple[Field, ...]) -> dict[str, list[str]]:
    """Returns what each field covers."""
    found: dict[str, list[str]] = {}
    for name, start, end in fields:
        found.setdefault(name, []).append(text[start:end])
    return found


# Worked by hand: word i of the source - word j of the target.
BASQUE = [
    (
        Moment(DAY, "date full"),
        "Saturday, November 21, 2026",
        "2026(e)ko azaroaren 21(a), larunbata",
        "0-3 1-1 2-2 3-0",
    ),
    (Moment(DAY, "skeleton MMMMd"), "November 21", "azaroaren 21(a)", "0-0 1-1"),
    (Week(47, DAY, "skeleton yw"), "week 47 of 2026", "2026. urteko 47. astea", "0-3 1-2 2-0 2-1 3-0 3-1"),
    (Week(2, DAY, "skeleton MMMMW"), "week 2 of November", "azaroaren 2. astea", "0-2 1-1 2-0 3-0"),
    (RelativeTime(-5, "hour"), "5 hours ago", "duela 5 ordu", "0-1 1-2 2-0"),
    (RelativeTime(5, "hour"), "in 5 hours", "5 ordu barru", "0-2 1-0 2-1"),
    (Percent(Decimal(35)), "35%", "% 35", "0-0 0-1"),
    (Money(Decimal("1234.5"), "EUR", False), "€1,234.50", "1.234,50 €", "0-0 0-1"),
    (Money(Decimal(12), "INR", True), "12 Indian rupees", "12 errupia indiar", "0-0 1-1 1-2 2-1 2-2"),
    (Quantity(Decimal(12), "length-kilometer", "long"), "12 kilometers", "12 kilometro", "0-0 1-1"),
    (
        Meeting(DAY, "long", "time short"),
        "November 21, 2026, 3:05 PM",
        "2026(e)ko azaroaren 21(a) (15:05)",
        "0-1 1-2 2-0 3-3 4-3",
    ),
    (
        Interval(Moment(DAY, "date long"), Moment(DAY.replace(year=2027), "date long")),
        "November 21, 2026 – November 21, 2027",
        "2026(e)ko azaroaren 21(a) – 2027(e)ko azaroaren 21(a)",
        "0-1 1-2 2-0 3-3 4-5 5-6 6-4",
    ),
    (
        Listing("standard", (FRANCE, RelativeTime(-3, "day"), Name("language", "fr"))),
        "France, 3 days ago, and French",
        "Frantzia, duela 3 egun eta frantsesa",
        "0-0 1-2 2-3 3-1 4-4 5-5",
    ),
    (Remark(Name("language", "fr"), Name("territory", "CA")), "French (Canada)", "frantsesa (Kanada)", "0-0 1-1"),
    (Name("territory", "PG"), "Papua New Guinea", "Papua Ginea Berria", "0-0 0-1 0-2 1-0 1-1 1-2 2-0 2-1 2-2"),
]
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


@pytest.mark.parametrize(("phrase", "source", "target", "links"), BASQUE)
def test_says_and_links_english_and_basque(phrase: Phrase, source: str, target: str, links: str) -> None:
    pair = say(phrase, "en", "eu")
    assert (pair.source, pair.target) == (source, target)
    assert word_links(pair) == pair.links() == links
    back = say(phrase, "eu", "en")
    turned = {tuple(reversed(link.split("-"))) for link in links.split()}
    assert {tuple(link.split("-")) for link in word_links(back).split()} == turned


@pytest.mark.parametrize(("source", "target", "phrase", "text", "links"), OTHERS)
def test_says_and_links_other_languages(source: str, target: str, phrase: Phrase, text: str, links: str) -> None:
    pair = say(phrase, source, target)
    assert pair.target == text
    assert word_links(pair) == links


def test_spans_are_the_characters_of_the_fields() -> None:
    pair = say(Moment(DAY, "date full"), "en", "eu")
    assert quoted(pair.source, pair.source_fields) == {
        "weekday": ["Saturday"],
        "month": ["November"],
        "day": ["21"],
        "year": ["2026"],
    }
    assert quoted(pair.target, pair.target_fields) == {
        "weekday": ["larunbata"],
        "month": ["azaroaren"],
        "day": ["21(a)"],
        "year": ["2026(e)ko"],
    }
    pair = say(Listing("or", (RelativeTime(-5, "hour"), Percent(Decimal(7)))), "en", "eu")
    assert quoted(pair.source, pair.source_fields) == {
        "0.number": ["5"],
        "0.unit": ["hours"],
        "0.direction": ["ago"],
        "and1": ["or"],
        "1.number": ["7"],
        "1.percent": ["%"],
    }
    assert quoted(pair.target, pair.target_fields) == {
        "0.number": ["5"],
        "0.unit": ["ordu"],
        "0.direction": ["duela"],
        "and1": ["edo"],
        "1.number": ["7"],
        "1.percent": ["%"],
    }


def test_a_word_of_two_fields_is_linked_for_each() -> None:
    pair = Pair(
        "1a b", "c d", (Field("x", 0, 1), Field("y", 1, 2), Field("z", 3, 4)), (Field("x", 2, 3), Field("y", 0, 1))
    )
    assert word_links(pair) == "0-0 0-1"


def test_templates_keep_their_fields_when_the_number_grows() -> None:
    language = Language(Locale("en"))
    for value, text in ((3, "3 hours ago"), (48, "48 hours ago"), (1, "1 hour ago")):
        said = language.say(RelativeTime(-value, "hour"))
        assert said.text == text
        assert [said.text[start:end] for _, start, end in said.fields] == text.split()


def test_missing_data_are_told() -> None:
    with pytest.raises(MissingError):
        Language(Locale("en")).say(Name("territory", "ABC"))
    with pytest.raises(MissingError):
        Language(Locale("en")).say(Quantity(Decimal(1), "length-horse", "long"))


@pytest.mark.parametrize("locales", thinned([("en", "eu"), ("de", "fr"), ("ja", "en"), ("ar", "zh")], 4), ids="-".join)
def test_one_source_has_one_target(locales: tuple[str, str]) -> None:
    # Two draws of one phrase are equal, so only a second translation of the same source can be found here.
    corpora = [BuiltIn(*locales, seed=seed, train_pairs=700, valid_pairs=1, test_pairs=1) for seed in (1, 2, 3)]
    told: dict[str, str] = {}
    for corpus in corpora:
        for pair in corpus.pairs("train"):
            assert told.setdefault(pair.source, pair.target) == pair.target


def test_the_same_seed_gives_the_same_corpus() -> None:
    first, again, other = (BuiltIn(seed=seed, train_pairs=300, valid_pairs=40, test_pairs=40) for seed in (1, 1, 2))
    for split in ("train", "valid", "test"):
        assert first.read(split) == again.read(split)
        assert first.read(split).source != other.read(split).source
    larger = BuiltIn(seed=1, train_pairs=500, valid_pairs=40, test_pairs=40)
    assert larger.read("test") == first.read("test")
    assert larger.read("valid") == first.read("valid")


def test_a_corpus_is_pinned_to_the_data_it_is_made_of() -> None:
    # What a seed gives changes with the CLDR, but not from machine to machine.
    if versions() != {"babel": "2.18.0", "cldr": "47"}:
        pytest.skip(f"the first phrases are known for Babel 2.18.0, this is {versions()}")
    pair = BuiltIn(train_pairs=1, valid_pairs=1, test_pairs=1).pairs("test")[0]
    assert pair.source == "Aug 7, 2043, 7:21 PM"
    assert pair.target == "2043(e)ko abu. 7(a) (19:21)"
    assert pair.links() == "0-1 1-2 2-0 3-3 4-3"


def test_splits_share_no_sentence_and_have_the_size_asked_for() -> None:
    corpus = BuiltIn(train_pairs=3000, valid_pairs=200, test_pairs=300)
    assert corpus.tests() == ["test"]
    assert corpus.languages == ("en", "eu")
    assert corpus.name == "builtin-en-eu"
    splits = {split: corpus.read(split) for split in corpus.splits()}
    assert {name: len(split.source) for name, split in splits.items()} == {"train": 3000, "valid": 200, "test": 300}
    for side in ("source", "target"):
        sentences = [sentence for split in splits.values() for sentence in getattr(split, side)]
        assert len(set(sentences)) == len(sentences) == 3500
    for split in splits.values():
        assert split.links is not None
        assert len(split.links) == len(split.target) == len(split.source)


@pytest.mark.long
def test_names_in_the_test_set_occur_in_training() -> None:
    corpus = BuiltIn()
    known = {word for sentence in corpus.read("train").target for word in re.findall(r"[^\W\d_]+", sentence)}
    words = [word for sentence in corpus.read("test").target for word in re.findall(r"[^\W\d_]+", sentence)]
    assert sum(word not in known for word in words) <= len(words) / 1000


def test_the_default_pair_turns_the_order_of_words_round() -> None:
    turned = 0
    pairs = BuiltIn(train_pairs=1, valid_pairs=1, test_pairs=300).read("test")
    assert pairs.links is not None
    for line in pairs.links:
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        turned += any(i < k and j > m for i, j in links for k, m in links)
    assert turned > 150


@pytest.mark.long
@settings(max_examples=12, derandomize=True)
@given(st.sampled_from(LOCALES), st.sampled_from(LOCALES), st.integers(0, 1000))
def test_any_two_locales(source: str, target: str, seed: int) -> None:
    corpus = BuiltIn(source, target, seed=seed, train_pairs=30, valid_pairs=5, test_pairs=5)
    for split in corpus.splits():
        for pair in corpus.pairs(split):
            words = []
            for text, fields in ((pair.source, pair.source_fields), (pair.target, pair.target_fields)):
                assert text
                assert text == text.strip()
                assert len(text.splitlines()) == 1
                assert not re.search(r"[^\S ]", text)  # no white space but plain spaces
                assert all(0 <= field.start < field.end <= len(text) for field in fields)
                assert all(text[start:end].strip() == text[start:end] for _, start, end in fields)
                words.append(len(text.split()))
            links = [tuple(map(int, link.split("-"))) for link in pair.links().split()]
            assert links
            assert links == sorted(set(links))
            assert all(i < words[0] and j < words[1] for i, j in links)


def test_a_sparse_locale_still_gives_a_corpus() -> None:
    # Babel has next to nothing for Aghem but dates and a few names.
    assert len(BuiltIn("en", "agq", train_pairs=50, valid_pairs=5, test_pairs=5).read("train").source) == 50


def test_a_style_that_the_source_does_not_tell_is_not_drawn() -> None:
    # In Finnish short dates look like medium ones, which may be something else in the other language.
    source, target = Language(Locale("fi")), Language(Locale("de"))
    assert source.say(Moment(DAY, "date short")) == source.say(Moment(DAY, "date medium"))
    drawn = Phrases(source, target)
    assert "date short" not in drawn._dates
    # "May" is long and medium in English: the first of the two styles is meant.
    may = datetime.datetime(2026, 5, 21)
    english = Phrases(Language(Locale("en")), target)
    assert english._rivals["date medium"] == {"date long"}
    assert english.source.say(Moment(may, "date long")).text == english.source.say(Moment(may, "date medium")).text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "hungarian"}, "Did you mean 'hu'?"),
        ({"source": "eng_USA"}, "data.source=eng_USA: Babel knows no such locale"),
        ({"target": "zh_Hanz"}, "zh_Hans"),
        ({"target": "de_XY"}, "de_"),
        ({"source": False}, "data.source=false: must be text"),
        ({"target": ""}, "knows no such locale"),
        ({"train_pairs": 0}, "data.train_pairs=0: must be at least 1"),
        ({"valid_pairs": -5}, "data.valid_pairs=-5: must be at least 1"),
        ({"test_pairs": 2.5}, "data.test_pairs=2.5: must be a whole number"),
    ],
)
def test_mistakes_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        checked(BuiltIn, settings, "data")()


def test_both_spellings_of_a_locale_are_the_same() -> None:
    sizes = {"train_pairs": 5, "valid_pairs": 2, "test_pairs": 2}
    assert BuiltIn("en", "zh-Hans", **sizes).read("test") == BuiltIn("en", "zh_Hans", **sizes).read("test")


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(UserError, match="Did you mean 'test'"):
        BuiltIn().read("tests")


def test_the_notes_name_what_the_corpus_is_made_of() -> None:
    (note,) = BuiltIn().notes()
    made_of = versions()
    assert set(made_of) == {"babel", "cldr"}
    assert all(version in note for version in made_of.values())
    assert "20,000" in note
