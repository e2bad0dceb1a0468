"""The built-in text: its files, and that the generator gives them."""

import re

import pytest

from nmt.data.builtin import BuiltIn, BuiltInDocuments
from nmt.data.dataset import DataSource, Split
from nmt.system.errors import UserError
from nmt.system.limits import checked
from tests.data.generated import generated


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


@pytest.mark.parametrize(
    ("row", "source", "target", "links"),
    [
        (98, "7 days ago", "duela 7 egun", "0-1 1-2 2-0"),
        (115, "Australia (29%)", "Australia (% 29)", "0-0 1-1 1-2"),
        (273, "Kikuyu, Basque, or Aragonese", "kikuyuera, euskara edo aragoiera", "0-0 1-1 2-2 3-3"),
        (343, "Montenegro (16 weeks ago)", "Montenegro (duela 16 aste)", "0-0 1-2 2-3 3-1"),
    ],
)
def test_links_checked_by_hand(row: int, source: str, target: str, links: str) -> None:
    test = BuiltIn().read("test")
    assert test.links is not None
    assert (test.source[row], test.target[row], test.links[row]) == (source, target, links)


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
