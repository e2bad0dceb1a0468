"""Data sets that the `datasets` library reads, tried on folders of our own making; nothing goes over the network."""

import socket
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import pytest

from nmt.data.dataset import Split
from nmt.data.hub_source import Hub
from nmt.data.sources import Multi30k
from nmt.data.stored import StoredLines
from nmt.system.errors import UserError
from tests.small import write_lines


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def translations(count: int, prefix: str = "") -> list[dict[str, str]]:
    """Rows of a column of {language: sentence}."""
    return [{"de": f"{prefix}satz {number}", "en": f"{prefix}sentence {number}"} for number in range(count)]


def saved(folder: Path, **splits: Any) -> str:
    """A saved data set with these splits, each a dictionary of columns."""
    tables = {name: datasets.Dataset.from_dict(columns) for name, columns in splits.items()}
    datasets.DatasetDict(tables).save_to_disk(str(folder / "saved"))
    return str(folder / "saved")


def test_a_column_of_translations(tmp_path: Path) -> None:
    features = datasets.Features({"id": datasets.Value("string"), "translation": datasets.Translation(["de", "en"])})
    table = datasets.Dataset.from_dict({"id": ["1", "2", "3"], "translation": translations(3)}, features=features)
    datasets.DatasetDict({"train": table, "validation": table, "test": table}).save_to_disk(str(tmp_path / "x"))
    data = Hub(str(tmp_path / "x"), source="en", target="de")
    data.check()
    assert (data.name, data.splits()) == ("x-en-de", ["train", "valid", "test"])
    assert data.read("valid") == Split("valid", [f"sentence {i}" for i in range(3)], [f"satz {i}" for i in range(3)])


def test_columns_named_by_language_in_files_and_line_breaks_in_sentences(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    columns = {"de": ["eins\nzwei", "drei\r\nvier", None], "en": ["one\rtwo", "three", "four"]}
    for split in ("train", "dev", "test_2016", "test_2017"):
        datasets.Dataset.from_dict(columns).to_json(str(folder / f"{split.replace('dev', 'validation')}.jsonl"))
    data = Hub(str(folder))
    # Only a line feed ends a line; a lone carriage return is text.
    assert list(data.read("train").source) == ["eins zwei", "drei vier", ""]
    assert list(data.read("train").target) == ["one\rtwo", "three", "four"]


def test_named_splits_and_columns(tmp_path: Path) -> None:
    columns = {"question": ["a", "b"], "answer": ["c", "d"]}
    path = saved(
        tmp_path, fit=columns, dev=columns, test_a=columns, test_b=columns, train={"question": ["x"], "answer": ["y"]}
    )
    data = Hub(path, None, "qu", "an", train="fit", source_column="question", target_column="answer")
    assert data.splits() == ["train", "valid", "test_a", "test_b"]
    assert list(data.read("train").target) == ["c", "d"]
    other = Hub(path, None, "qu", "an", valid="fit", test="train", source_column="question", target_column="answer")
    assert other.tests() == ["test-train"]
    assert list(other.read("test-train").source) == ["x"]
    assert list(other.read("valid").source) == ["a", "b"]


def test_what_is_missing_is_held_out(tmp_path: Path) -> None:
    rows = [*translations(300), {"de": "", "en": "nothing"}]
    data = Hub(saved(tmp_path, train={"translation": rows}))
    assert data.splits() == ["train", "valid", "test"]
    assert [len(data.read(name).source) for name in data.splits()] == [260, 20, 20]
    assert "Held out: 20 for valid and 20 for test" in data.notes()[2]
    assert Hub(saved(tmp_path / "b", train={"translation": rows}), test_pairs=0).tests() == []


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_one_file_is_a_data_set_of_one_split(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"train.{ending}"
    rows = [*translations(298), {"de": "null", "en": "NA"}, {"de": '"quote', "en": "two"}]
    table = datasets.Dataset.from_list(rows)
    if ending == "jsonl":
        table.to_json(str(path))
    elif ending == "parquet":
        table.to_parquet(str(path))
    elif ending == "tsv":  # as a program without quotes writes it
        write_lines(path, ["de\ten", *("\t".join(row.values()) for row in rows)])
    else:
        table.to_csv(str(path), index=False)
    whole = Hub(str(tmp_path), test_pairs=20)
    assert sum(len(whole.read(name).source) for name in whole.splits()) == 300
    data = Hub(str(path))
    data.check()
    assert {"null", '"quote'} <= {line for name in data.splits() for line in data.read(name).source}
    assert [len(data.read(name).source) for name in data.splits()] == [260, 20, 20]
    with pytest.raises(UserError, match=rf"There is no file .*Did you mean 'train\.{ending}'"):
        Hub(str(tmp_path / f"trian.{ending}")).check()
    (tmp_path / "train.txt").write_text("x\n")
    with pytest.raises(UserError, match=r"a file must end in \.json, .*data\.files="):
        Hub(str(tmp_path / "train.txt")).check()


def test_pairs_without_a_side_are_counted(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.csv", ["de,en", "eins,", *(f"wort {at},word {at}" for at in range(300))])
    assert "1 of 301 pairs dropped: one side is empty." in Hub(str(tmp_path / "a.csv")).notes()
    with pytest.raises(UserError, match=r"data\.source_column=en and data\.target_column= name the same column"):
        Hub(str(tmp_path / "a.csv"), source_column="en", target_column="en").read("train")
    write_lines(tmp_path / "b.csv", ["de,en", "eins,one", "zwei,two,three"])
    with pytest.raises(UserError, match="Expected 2 fields in line 3, saw 3"):
        Hub(str(tmp_path / "b.csv")).read("train")


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("held_out", [False, True])
def test_a_large_table_stays_in_its_files(
    known: bool, held_out: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the splits, held-out pairs and fingerprints of a small one."""
    rows = [*translations(150, "a\n"), {"de": "", "en": "nothing"}, *translations(150), {"de": None, "en": "x"}]
    names = ("train",) if held_out else ("train", "validation", "test")
    path = saved(tmp_path, **{name: {"translation": rows} for name in names})
    small, stays = Hub(path), Hub(path)
    stays.known = tmp_path / "known" if known else None
    splits = {name: small.read(name) for name in small.splits()}
    monkeypatch.setattr("nmt.data.stored.LARGE", 0)
    for _ in range(2):
        for name, split in splits.items():
            same = stays.read(name)
            assert (list(same.source), list(same.target)) == (list(split.source), list(split.target))
            assert same.fingerprint() == split.fingerprint()
        assert stays.notes() == small.notes()
        assert isinstance(stays.read("train").source, StoredLines)
        assert not isinstance(splits["train"].source, StoredLines)


def test_mistakes(tmp_path: Path) -> None:
    path = saved(tmp_path, train={"translation": translations(3)}, validation={"translation": translations(3)})
    with pytest.raises(UserError, match=r"no column for 'fr': its columns are translation, with the languages de, en"):
        Hub(path, source="fr", test_pairs=0).read("train")
    with pytest.raises(UserError, match=r"no split 'vaildation'; it has train, validation\. Did you mean 'validation'"):
        Hub(path, valid="vaildation").read("valid")
    with pytest.raises(UserError, match=r"data\.source_column=tranlation is not a column.*Did you mean 'translation'"):
        Hub(path, source_column="tranlation").read("valid")
    with pytest.raises(UserError, match=r"no split 'foo'"):
        Hub(path).read("foo")
    with pytest.raises(UserError, match=r"data\.path=NAME is missing"):
        Hub(None)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match="A folder must be written by `save_to_disk`"):
        Hub(str(empty)).read("train")
    numbers = saved(tmp_path / "n", train={"de": [1, 2], "en": [3, 4]}, validation={"de": ["", " "], "en": ["a", "b"]})
    with pytest.raises(UserError, match="column de holds int, not text"):
        Hub(numbers, test_pairs=0).read("train")
    with pytest.raises(UserError, match=r"split validation of .* is empty"):
        Hub(numbers, test_pairs=0).read("valid")


def test_no_network_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    before, during, load = datasets.config.HF_HUB_OFFLINE, list[bool](), datasets.load_dataset

    def observe(*arguments: Any, **settings: Any) -> Any:
        during.append(datasets.config.HF_HUB_OFFLINE)
        return load(*arguments, **settings)

    monkeypatch.setattr(datasets, "load_dataset", observe)
    for data in (Hub("somebody/nothing"), Multi30k(None)):
        with pytest.raises(UserError, match=r"The Hub cannot be reached.*data\.root=DIR"):
            data.read("train")
    assert during == [True] * len(during) != [], "else the library tries again for minutes"
    assert before == datasets.config.HF_HUB_OFFLINE


def test_multi30k_of_the_hub_has_the_names_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"de": ["eins"], "en": ["one"]}
    tables = {name: datasets.Dataset.from_dict(columns) for name in ("train", "validation", "test")}
    asked: list[str] = []

    def load(path: str, *_: object) -> dict[str, Any]:
        asked.append(path)
        return tables

    monkeypatch.setattr("nmt.data.hub_source.load_tables", load)
    data = Multi30k(None, "en", "de")
    assert data.splits() == ["train", "valid", "test_2016_flickr"]
    assert data.read("test_2016_flickr") == Split("test_2016_flickr", ["one"], ["eins"])
    assert data.read("valid").name == "valid"
    assert set(asked) == {"bentrevett/multi30k"}
