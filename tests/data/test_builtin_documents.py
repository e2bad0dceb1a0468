"""Built-in documents: what a sentence means stands in the first sentence of its document, and nowhere else."""

from collections import Counter

import pytest

from nmt.data.builtin.documents import BuiltInDocuments
from nmt.data.corpus import Split
from nmt.errors import UserError


@pytest.fixture(scope="module")
def corpus() -> BuiltInDocuments:
    return BuiltInDocuments("en", "de", train_documents=130, valid_documents=13, test_documents=26)


def test_narrow_units_with_several_meanings(corpus: BuiltInDocuments) -> None:
    assert corpus.families["′"] == ["angle-arc-minute", "length-foot"]
    assert len(corpus.families["m"]) == 3
    with pytest.raises(
        UserError, match=r"ru has no narrow unit with two meanings that en tells apart.*data\.source=en"
    ):
        BuiltInDocuments("ru", "en")


def test_each_document_is_there_with_every_meaning(corpus: BuiltInDocuments) -> None:
    """So a source with the sentences up to N back is there with every translation, but for the first sentence."""
    test = corpus.read("test")
    assert test.documents is not None
    by_rest: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for document in range(test.documents[-1] + 1):
        rows = [row for row, number in enumerate(test.documents) if number == document]
        assert len(rows) == 4
        by_rest.setdefault(tuple(test.source[row] for row in rows[1:]), []).append(tuple(test.target[r] for r in rows))
    assert all(len(set(targets)) == len(targets) > 1 for targets in by_rest.values())


def test_contrasts_are_the_other_meanings(corpus: BuiltInDocuments) -> None:
    test, items = corpus.read("test"), corpus.contrasts("test")
    right: dict[str, set[str]] = {}
    for item in items:
        assert item.distance == item.row % 4 > 0
        right.setdefault(test.source[item.row], set()).add(test.target[item.row])
    for item in items:
        assert {test.target[item.row], *item.wrong} == right[test.source[item.row]]
        assert test.target[item.row] not in item.wrong
    assert set(Counter(item.distance for item in items)) == {1, 2, 3}


def test_the_first_sentence_tells(corpus: BuiltInDocuments) -> None:
    """The unit of a first sentence has one translation, whose unit all narrow forms of its document have."""
    train, items = corpus.read("train"), corpus.contrasts("train")

    def unit(text: str) -> str:
        return text.partition(" ")[2]

    meaning: dict[str, set[str]] = {}
    for item in items:
        first = item.row - item.distance
        meaning.setdefault(unit(train.source[first]), set()).add(unit(train.target[item.row]))
        assert unit(train.target[first]) == unit(train.target[item.row])
    assert all(len(units) == 1 for units in meaning.values())


@pytest.mark.long
def test_amounts_are_in_one_split_only(corpus: BuiltInDocuments) -> None:
    def narrow(split: str) -> set[str]:
        return {corpus.read(split).source[item.row] for item in corpus.contrasts(split)}

    assert not narrow("train") & narrow("test")
    assert not narrow("train") & narrow("valid")
    assert not narrow("valid") & narrow("test")


def test_the_corpus_follows_from_its_seed(corpus: BuiltInDocuments) -> None:
    def read(seed: int) -> Split:
        return BuiltInDocuments("en", "de", seed, train_documents=130, valid_documents=5, test_documents=5).read(
            "train"
        )

    assert read(1) == corpus.read("train") != read(2)
