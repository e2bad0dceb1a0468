"""Which lines are a document, what stood before each line, and how documents are held out."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batch import make_batch
from nmt.data.dataset import Split
from nmt.data.document_lines import (
    Contexts,
    Follower,
    by_blank_lines,
    context_tensor,
    contexts_of,
    numbered,
)
from nmt.data.holdout import divide
from nmt.data.sources import TextFiles, UserFiles
from nmt.system.errors import UserError
from nmt.text.tokenizer import EOS, PAD, Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer
from tests.small import write_lines

#: Two documents of three and two lines, empty lines before, between and after them.
LINES = ["", "a b", "c", "d", "", " ", "e", "f", ""]
NUMBERS = [0, 0, 0, 0, 0, 1, 1, 1, 1]
BEFORE = [[], [], ["a b"], ["a b", "c"], [], [], [], ["e"], []]


def tokenizer(lines: list[str]) -> Tokenizer:
    made, _ = TokenizerTrainer(model_type="char", vocabulary_size=60).train(lines, lines)
    return made


def test_empty_lines_end_documents() -> None:
    assert list(by_blank_lines(LINES)) == NUMBERS
    assert list(by_blank_lines([])) == []
    assert list(by_blank_lines(["", ""])) == [0, 0]
    assert contexts_of(LINES, NUMBERS, 2) == BEFORE
    assert contexts_of(LINES, NUMBERS, 1)[3] == ["c"]
    assert contexts_of(LINES, None, 2) == [[]] * 9


def test_a_line_that_is_empty_on_one_side_only() -> None:
    with pytest.raises(UserError, match=r"t\.en, line 2: empty, but t\.de has text there.*Empty the line on both"):
        list(by_blank_lines(["a", "b"], ["a", ""], names=("t.de", "t.en")))


@given(st.lists(st.sampled_from(["", " ", "a", "b", "c"]), max_size=30), st.integers(0, 4), st.data())
def test_lines_that_arrive_in_pieces_have_the_contexts_of_the_whole(
    lines: list[str], sentences: int, data: st.DataObject
) -> None:
    whole = contexts_of(lines, numbered(lines, "blank"), sentences)
    follower = Follower(sentences, "blank")
    rest, contexts = lines, list[list[str]]()
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        contexts += follower.take(rest[:count])
        rest = rest[count:]
    assert contexts == whole
    for row, context in enumerate(contexts):
        assert len(context) <= sentences
        assert "" not in map(str.strip, context)
        if lines[row].strip():  # the nearest sentences, back to the last empty line
            start = max((at + 1 for at in range(row) if not lines[at].strip()), default=0)
            assert context == lines[start:row][max(0, row - start - sentences) :]


def test_other_ways_to_follow_a_text() -> None:
    assert Follower(2, "one").take(["a", "", "b", "c"]) == [[], [], ["a"], ["a", "b"]]
    assert Follower(2, "none").take(["a", "b"]) == [[], []]
    assert numbered(LINES, "blank") == NUMBERS
    assert numbered(["a", "", "b"], "one") == [0, 0, 0]
    assert numbered(["a", "", "b"], "none") == [0, 1, 2]


def test_the_nearest_sentence_is_last() -> None:
    tensor = context_tensor([[[5, 6], [7]], [], [[8, 9, 10]]])
    assert tensor.tolist() == [
        [[5, 6, EOS, PAD], [7, EOS, PAD, PAD]],
        [[PAD] * 4, [PAD] * 4],
        [[PAD] * 4, [8, 9, 10, EOS]],
    ]
    assert context_tensor([[], []]).shape == (2, 0, 0)


def test_batches_have_what_stood_before_in_any_order() -> None:
    split = Split("train", LINES, LINES, documents=NUMBERS)
    encode = tokenizer(LINES).source.encode
    add = Contexts(split, tokenizer(LINES), 2, 2)
    for rows in ([3, 7, 1], [1], [7, 3]):
        batch = add(make_batch(encode([LINES[row] for row in rows]), rows=rows))
        expected = context_tensor([[tokens[:2] for tokens in encode(BEFORE[row])] for row in rows])
        assert torch.equal(batch.context, expected)


def test_documents_are_held_out_whole() -> None:
    numbers = [row // 7 for row in range(700)]
    text = [f"s{row % 90}" for row in range(700)]
    corpus = Split("x", text, text, documents=numbers)
    splits, notes = divide(corpus, {"valid": 20, "test": 14}, seed=3)
    documents = {name: set(split.documents or []) for name, split in splits.items()}
    assert [len(documents[name]) for name in ("valid", "test", "train")] == [3, 2, 95]
    assert not documents["valid"] & documents["test"]
    for split in splits.values():
        assert split.documents is not None
        assert list(split.source) == [text[row] for row in range(700) if numbers[row] in set(split.documents)]
    assert "in whole documents (3 for valid and 2 for test). 35 of these pairs have a sentence that" in notes[0]
    assert divide(corpus, {"valid": 20, "test": 14}, seed=4)[0] != splits
    with pytest.raises(UserError, match="3 sets need a document each, but there are 2"):
        divide(corpus.take("x", range(14)), {"valid": 1, "test": 1}, seed=1)


class TestFiles:
    """The layouts of documents in files, read to the same documents."""

    SOURCE = ("eins", "zwei", "", "drei", "vier", "fünf")
    TARGET = ("one", "two", "", "three", "four", "five")
    EXPECTED = (["eins", "zwei", "drei", "vier", "fünf"], [0, 0, 1, 1, 1])

    def test_empty_lines(self, tmp_path: Path) -> None:
        files = [str(write_lines(tmp_path / "a.de", self.SOURCE)), str(write_lines(tmp_path / "a.en", self.TARGET))]
        for valid_pairs in (None, 2):
            data = UserFiles(files, documents="blank", valid=files, test_pairs=0, valid_pairs=valid_pairs)
            train = data.read("train")
            assert (list(train.source), list(train.documents or [])) == self.EXPECTED

    def test_a_column(self, tmp_path: Path) -> None:
        rows = zip(self.SOURCE, self.TARGET, ("x", "x", "", "y", "y", "y"), strict=True)
        path = str(write_lines(tmp_path / "de-en.tsv", ["\t".join(row) for row in [*rows, ("", "", "")]]))
        train = UserFiles(path, documents=3, valid=path, test_pairs=0).read("train")
        assert (list(train.source), list(train.documents or [])) == self.EXPECTED
        bad_rows = [("source", "target", "document"), *(("ein Satz", "a text", name) for name in "xxyx")]
        bad = str(write_lines(tmp_path / "bad.tsv", list(map("\t".join, bad_rows))))
        with pytest.raises(UserError, match=r"bad\.tsv, line 5: document 'x' returns; its last line was line 3"):
            UserFiles(bad, documents=3, valid=path, test_pairs=0).read("train")
        with pytest.raises(UserError, match=r"line 1: no column 4 with the document's id \(data\.documents=4\)"):
            UserFiles(path, documents=4, valid=path, test_pairs=0).read("train")

    def test_one_file_a_document(self, tmp_path: Path) -> None:
        for name, rows in (("1", slice(0, 2)), ("2", slice(3, 6))):
            for language, lines in (("de", self.SOURCE), ("en", self.TARGET)):
                for folder in (tmp_path / "train", tmp_path / language):
                    folder.mkdir(exist_ok=True)
                write_lines(tmp_path / "train" / f"{name}.{language}", lines[rows])
                write_lines(tmp_path / language / name, lines[rows])
        prefix = str(tmp_path / "train")
        train = TextFiles("de", "en", prefix, prefix, documents="files").read("train")
        assert (list(train.source), list(train.documents or [])) == self.EXPECTED
        folders = [str(tmp_path / "de"), str(tmp_path / "en")]
        train = UserFiles(folders, "de", "en", valid=folders, test_pairs=0, documents="files").read("train")
        assert (list(train.source), list(train.documents or [])) == self.EXPECTED
        (tmp_path / "en" / "2").unlink()
        with pytest.raises(UserError, match=r"de/2 has no translation in .*/en"):
            UserFiles(folders, "de", "en", valid=folders, test_pairs=0, documents="files").read("train")

    def test_without_documents_nothing_is_a_document(self, tmp_path: Path) -> None:
        files = [str(write_lines(tmp_path / "a.de", self.SOURCE)), str(write_lines(tmp_path / "a.en", self.TARGET))]
        train = UserFiles(files, valid=files, test_pairs=0).read("train")
        assert train.documents is None
        assert train.fingerprint() != train._replace(documents=[0] * 5).fingerprint()
