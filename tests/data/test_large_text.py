"""A text that stays in its files gives the run that it would give in memory; of very many pairs, some are at a time."""

import functools
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.data import stored
from nmt.data.cache import prepare, spilled
from nmt.data.dataset import Split, links_fingerprint
from nmt.data.document_lines import Contexts
from nmt.data.guide import Guide
from nmt.data.pairs import EncodedPairs, Ragged, SampledPairs, encode_blocks, held
from nmt.data.sources import TextFiles, UserFiles
from nmt.data.stored import StoredLines
from nmt.data.token_batches import TokenBatches
from nmt.data.tokenizer_cache import trained
from nmt.text.tokenizer import Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer

COUNT = 700
SOURCE = [" ".join(["der", "rote", "Hund", "läuft", f"{row}"][: 1 + row % 5]) + f" {row}" for row in range(COUNT)]
TARGET = [" ".join(["the", "red", "dog", "runs", f"{row}"][: 1 + row % 5]) + f" {row}" for row in range(COUNT)]
LINKS = [" ".join(f"{at}-{at}" for at in range(1 + row % 5)) for row in range(COUNT)]
LIMITS = {"max_source_length": 20, "max_target_length": 20}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Text, with empty lines, as two files, as one with tabs, and its links."""
    sides = [line if row % 50 else "" for row, line in enumerate(SOURCE)], TARGET
    for language, lines in zip(("de", "en"), sides, strict=True):
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        (tmp_path / f"valid.{language}.gz").write_bytes(gzip.compress("\n".join(lines[:30]).encode()))
    (tmp_path / "links").write_text("".join(f"{line if row % 50 else ''}\n" for row, line in enumerate(LINKS)), "utf-8")
    (tmp_path / "both.de-en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True)), "utf-8")
    return tmp_path


def text(folder: Path) -> TextFiles:
    """The two files as a data set."""
    source = TextFiles("de", "en", f"{folder}/train", f"{folder}/valid", train_links=f"{folder}/links")
    source.known = folder / "cache" / "files"
    return source


def test_text_in_files_is_the_text_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = {name: text(folder).read(name) for name in ("train", "valid")}
    trainer = TokenizerTrainer("unigram", vocabulary_size=320, sample_sentences=100)
    tokenizer, notes = trainer.train(in_memory["train"].source, in_memory["train"].target)
    expected = prepare(in_memory["train"], tokenizer, **LIMITS, cache=folder / "one")
    monkeypatch.setattr(stored, "LARGE", 1)
    for _ in range(2):  # nothing is known, then all is
        for name, split in in_memory.items():
            found = text(folder).read(name)
            assert isinstance(found.source, StoredLines)
            assert isinstance(found.target, StoredLines)
            assert (list(found.source), list(found.target)) == (list(split.source), list(split.target))
            assert found.fingerprint() == split.fingerprint()
        found = text(folder).read("train")
        assert isinstance(found.links, StoredLines)
        assert in_memory["train"].links is not None
        assert list(found.links) == in_memory["train"].links
        assert links_fingerprint(found.links) == links_fingerprint(in_memory["train"].links)
        again, said = trainer.train(found.source, found.target)
        assert (again.source.model, said) == (tokenizer.source.model, notes)
        pairs = prepare(found, again, **LIMITS, cache=folder / "one")  # the same key: found, not made
        assert pairs.rows.tolist() == expected.rows.tolist()
        batch = pairs.batch(np.arange(9))
        assert Guide(found, again)(batch).links.equal(Guide(in_memory["train"], again)(batch).links)
    assert len(list((folder / "one").iterdir())) == 1


def test_documents_in_files_are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [[line if row % 9 else "" for row, line in enumerate(side)] for side in (SOURCE, TARGET)]
    rows = zip(*sides, strict=True)
    (tmp_path / "both.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")

    def read() -> dict[str, Split]:
        source = UserFiles(str(tmp_path / "both.tsv"), "de", "en", valid_pairs=20, test_pairs=0, documents="blank")
        source.known = tmp_path / "cache"
        return {name: source.read(name) for name in ("train", "valid")}

    expected = read()
    tokenizer, _ = TokenizerTrainer("char").train(*sides)
    monkeypatch.setattr(stored, "LARGE", 1)
    monkeypatch.setattr(stored, "HELD", 100)
    found = read()
    for name, split in expected.items():
        assert [*found[name].source] == [*split.source]
        assert [*found[name].target] == [*split.target]
        assert np.array_equal(np.asarray(found[name].documents), np.asarray(split.documents))
        assert found[name].fingerprint() == split.fingerprint()
    train = found["train"]
    assert isinstance(train.source, StoredLines)
    assert isinstance(train.documents, np.memmap)
    pairs = held(encode_blocks(train, tokenizer, **LIMITS))
    batch = pairs.batch(np.arange(0, len(pairs), 7))
    contexts = [Contexts(split, tokenizer, 2, 9)(batch).context for split in (train, expected["train"])]
    assert contexts[0].shape[1] == 2
    assert contexts[0].equal(contexts[1])


def test_a_known_text_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LARGE", 1)
    trainer = TokenizerTrainer("char")
    tokenizer, _ = trainer.train(SOURCE, TARGET)
    source = TextFiles("de", "en", f"{folder}/train", f"{folder}/valid")
    source.known = folder / "cache" / "files"

    def start() -> tuple[str, EncodedPairs]:
        split = source.read("train")
        return split.fingerprint(), prepare(split, tokenizer, **LIMITS, cache=folder / "cache")

    read: list[tuple[int, int]] = []
    original = StoredLines.between

    def noted(lines: StoredLines, first: int, end: int) -> list[str]:
        read.append((first, end))
        return original(lines, first, end)

    first = start()
    monkeypatch.setattr(StoredLines, "between", noted)
    monkeypatch.setattr(stored, "_MANY", 40)
    again = start()
    assert again[0] == first[0]
    assert again[1].rows.tolist() == first[1].rows.tolist()
    assert max(end for _, end in read) <= 40  # one look, whether there is any text


@pytest.mark.parametrize("files", [["train.de", "train.en"], ["both.de-en.tsv"]])
def test_a_users_files_stay_in_their_files(files: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> UserFiles:
        source = UserFiles([str(folder / name) for name in files], valid_pairs=20, test_pairs=10)
        source.known = folder / "cache" / "files"
        return source

    small = made()
    expected = {name: small.read(name) for name in small.splits()}
    monkeypatch.setattr(stored, "LARGE", 1)
    source = made()
    found = {name: source.read(name) for name in source.splits()}
    assert isinstance(found["train"].source, StoredLines)
    for name, split in expected.items():
        assert (list(found[name].source), list(found[name].target)) == (list(split.source), list(split.target))
    assert source.notes() == small.notes()
    assert "14 of 700 pairs" in " ".join(source.notes())


@pytest.fixture(scope="module")
def many() -> EncodedPairs:
    """Pairs of many lengths, whose first token names them."""
    generator = np.random.default_rng(1)

    def side() -> Ragged:
        sizes = generator.integers(1, 30, 3000)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        values = np.repeat(np.arange(3000), sizes).astype(np.int32)
        return Ragged([(values[: offsets[1000]], offsets[:1001]), (values, offsets[1000:])])

    return EncodedPairs(side(), side(), np.arange(3000), {})


@pytest.mark.parametrize("shuffle", [True, False])
def test_very_many_pairs_are_planned_some_at_a_time(
    many: EncodedPairs, shuffle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.data.token_batches.MANY", 1000)
    monkeypatch.setattr(stored, "HELD", 1000)
    monkeypatch.setattr("nmt.data.token_batches._STRETCH", 10)
    monkeypatch.setattr("nmt.data.token_batches._PART", 1000)

    def plan(seed: int, epoch: int) -> list[list[int]]:
        made = TokenBatches(many, tokens_per_batch=300, seed=seed, shuffle=shuffle, folder=tmp_path).plan(epoch)
        return [indices.tolist() for indices in made[:]]

    batches = plan(1, 0)
    assert sorted(row for rows in batches for row in rows) == list(range(3000))
    assert batches == plan(1, 0)
    if not shuffle:
        return
    assert batches != plan(2, 0) != plan(1, 1)
    for rows in batches:
        for lengths in (many.source_lengths, many.target_lengths):
            assert len(rows) * (lengths[rows].max() + 1) <= 300
    # Every part has pairs from the whole text, and other ones in each epoch.
    first, later = ({row for rows in plan(1, epoch)[: len(batches) // 3] for row in rows} for epoch in (0, 1))
    assert max(first) - min(first) > 2000
    assert 0.2 < len(first & later) / len(first) < 0.5
    assert not list(tmp_path.iterdir())  # the plan's file has no name
    whole = TokenBatches(many, tokens_per_batch=300, shuffle=False)
    monkeypatch.undo()
    assert max(TokenBatches(many, tokens_per_batch=300).padding) < 0.1
    assert max(whole.padding) < 0.12


def test_an_epoch_that_is_sampled_can_be_in_a_file(tmp_path: Path) -> None:
    tokenizer: Tokenizer = TokenizerTrainer("unigram", vocabulary_size=320).train(SOURCE, TARGET)[0]
    split = Split("train", SOURCE, TARGET)
    sampled = functools.partial(
        SampledPairs, split, tokenizer, alpha=0.3, seed=1, max_source_length=20, max_target_length=20
    )
    kept, stored = sampled(), sampled(hold=functools.partial(spilled, cache=tmp_path / "cache"))
    for epoch in (0, 1):
        one, other = kept.for_epoch(epoch), stored.for_epoch(epoch)
        assert [one.source(row) for row in range(len(one))] == [other.source(row) for row in range(len(other))]
        assert one.dropped == other.dropped
    assert not list((tmp_path / "cache").iterdir())


def test_a_tokenizer_is_trained_once_for_a_text_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = Split("train", SOURCE, TARGET)
    trainings: list[bool] = []
    original = TokenizerTrainer.train

    def noted(*arguments: Any) -> Any:
        trainings.append(True)
        return original(*arguments)

    monkeypatch.setattr(TokenizerTrainer, "train", noted)

    def made(split: Split = split, **settings: Any) -> tuple[bytes, bytes, list[str]]:
        tokenizer, notes = trained(TokenizerTrainer("bpe", vocabulary_size=320, **settings), split, tmp_path)
        return tokenizer.source.model, tokenizer.target.model, notes

    first = made()
    assert made() == first
    assert len(trainings) == 1
    apart = made(joint=False)
    assert made(joint=False) == apart != first
    assert made(Split("train", SOURCE[1:], TARGET[1:])) != first
    assert len(trainings) == 3
    for path in tmp_path.glob("*/*.model"):  # damaged: trained again
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert made() == made() == first
    assert len(trainings) == 4
