"""The cache gives what tokenising gives, is shared by content, and heals itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from nmt.data.cache import prepare
from nmt.data.dataset import Split
from nmt.data.pairs import EncodedPairs, encode_blocks, held
from nmt.system.errors import UserError
from nmt.text.tokenizer import Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer

SOURCE = [f"der {word} Hund {number}" for number in range(40) for word in ("rote", "alte", "kleine")]
TARGET = [f"the {word} dog {number}" for number in range(40) for word in ("red", "old", "small")]
LIMITS = {"max_source_length": 40, "max_target_length": 30}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A small tokenizer."""
    return TokenizerTrainer("bpe", vocabulary_size=320).train(SOURCE, TARGET)[0]


def same(one: EncodedPairs, other: EncodedPairs) -> bool:
    """Whether two tokenised splits hold the same."""
    return (
        one.dropped == other.dropped
        and one.rows.tolist() == other.rows.tolist()
        and one.source_lengths.tolist() == other.source_lengths.tolist()
        and all(one.source(i) == other.source(i) and one.target(i) == other.target(i) for i in range(len(one)))
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_what_comes_back_is_what_tokenising_gives(
    workers: int,
    tokenizer: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("nmt.data.pairs.BLOCK", 7)  # many blocks
    split = Split("train", SOURCE, TARGET)
    first = prepare(split, tokenizer, **LIMITS, cache=tmp_path / "new" / "cache", workers=workers)
    again = prepare(split, tokenizer, **LIMITS, cache=tmp_path / "new" / "cache", workers=workers)
    assert same(first, held(encode_blocks(split, tokenizer, **LIMITS)))
    assert same(first, again)
    assert [tokenizer.source.decode(first.source(i)) for i in range(len(first))] == SOURCE
    assert [tokenizer.target.decode(first.target(i)) for i in range(len(first))] == TARGET
    assert len(list((tmp_path / "new" / "cache").iterdir())) == 1
    assert capfd.readouterr() == ("", "")  # no progress bars


def test_pairs_that_are_left_out_are_counted_by_reason(tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = ["", "a", " \t", "x " * 100, "b", "x " * 100, "c", "d", ""]
    target = ["a", "", "b", "c", "x " * 100, "x " * 100, "c", "d", "x " * 100]
    pairs = prepare(Split("train", source, target), tokenizer, **LIMITS, cache=tmp_path)
    assert pairs.dropped == {"empty on a side": 4, "source too long": 2, "target too long": 1}
    assert pairs.rows.tolist() == [6, 7]
    assert pairs.dropped_note() == ("7 of 9 pairs dropped: 4 empty on a side, 2 source too long, 1 target too long.")
    assert prepare(Split("train", ["a"], ["b"]), tokenizer, **LIMITS, cache=tmp_path).dropped_note() == ""


def test_limits_count_pieces_and_are_inclusive(tokenizer: Tokenizer, tmp_path: Path) -> None:
    source, target = "der rote Hund", "the red dog"
    long, short = len(tokenizer.source.encode([source])[0]), len(tokenizer.target.encode([target])[0])
    split = Split("train", [source], [target])
    for max_source, max_target, kept in ((long, short, 1), (long - 1, short, 0), (long, short - 1, 0)):
        pairs = prepare(split, tokenizer, max_source_length=max_source, max_target_length=max_target, cache=tmp_path)
        assert len(pairs) == kept


def test_a_split_with_nothing_left_is_cached_too(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for _ in range(2):
        pairs = prepare(Split("train", ["", ""], ["a", "b"]), tokenizer, **LIMITS, cache=tmp_path)
        assert len(pairs) == 0
        assert pairs.dropped["empty on a side"] == 2
        assert pairs.source_lengths.tolist() == []


def test_keys_depend_on_text_tokenizer_and_limits(tokenizer: Tokenizer, tmp_path: Path) -> None:
    chars = TokenizerTrainer("char").train(SOURCE, TARGET)[0]
    a, b, longer = ["a"], ["b"], ["a", ""]
    cases = [
        (a, b, tokenizer, 10),
        (a, b, tokenizer, 11),
        (a, b, chars, 10),
        (b, a, chars, 10),
        (longer, longer, chars, 10),
    ]
    for count, (source, target, which, most) in enumerate(cases, start=1):
        for name in ("train", "valid"):  # the split's name is not content: what is the same is stored once
            prepare(Split(name, source, target), which, max_source_length=most, max_target_length=10, cache=tmp_path)
        assert len(list(tmp_path.iterdir())) == count


@pytest.mark.parametrize("damage", ["truncated", "flipped", "no description", "bad description", "a file", "no pairs"])
def test_a_damaged_cache_is_rebuilt(damage: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    split = Split("train", SOURCE, TARGET)
    whole = prepare(split, tokenizer, **LIMITS, cache=tmp_path)
    (folder,) = tmp_path.iterdir()
    pairs, about = folder / "table.arrow", folder / "about.json"
    data = bytearray(pairs.read_bytes())
    expected = held(encode_blocks(split, tokenizer, **LIMITS))
    assert same(whole, expected)
    del whole
    pairs.unlink()  # the mapped file stays as it is; another takes its name
    if damage == "truncated":
        pairs.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        data[len(data) // 2] ^= 1
        pairs.write_bytes(data)
    elif damage == "no description":
        pairs.write_bytes(data)
        about.unlink()
    elif damage == "bad description":
        pairs.write_bytes(data)
        about.write_text("[]")
    elif damage == "a file":
        about.unlink()
        folder.rmdir()
        folder.write_text("in the way")
    assert same(prepare(split, tokenizer, **LIMITS, cache=tmp_path), expected)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert (folder / "table.arrow").read_bytes() != bytes(data[: len(data) // 2])


def test_the_loser_of_a_race_takes_what_is_there(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = Split("train", SOURCE, TARGET)
    real = encode_blocks
    raced: list[EncodedPairs] = []

    def while_another_run_finishes(*arguments: object) -> object:
        if not raced:
            monkeypatch.setattr("nmt.data.cache.encode_blocks", real)
            raced.append(prepare(split, tokenizer, **LIMITS, cache=tmp_path))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("nmt.data.cache.encode_blocks", while_another_run_finishes)
    pairs = prepare(split, tokenizer, **LIMITS, cache=tmp_path)
    assert same(pairs, raced[0])
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_half_written_stays(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("nmt.data.cache.encode_blocks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(Split("train", SOURCE, TARGET), tokenizer, **LIMITS, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"Cannot write .*file.*cache=FOLDER"):
        prepare(Split("train", SOURCE, TARGET), tokenizer, **LIMITS, cache=tmp_path / "file" / "cache")


def test_batches_do_not_need_the_datasets_library() -> None:
    program = "import nmt.data.token_batches, sys; assert not {'datasets', 'pyarrow', 'hydra'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])
