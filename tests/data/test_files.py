"""Data sets in files: what is found where, what is chosen for a user, and what each mistake gets."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.data.dataset import safe_name
from nmt.data.languages import checked_languages
from nmt.data.sources import Multi30k, Tatoeba, TextFiles, UserFiles, name_tests
from nmt.system.errors import UserError
from nmt.system.limits import checked


def write(path: Path, lines: Sequence[str]) -> Path:
    """Writes lines, packed where the name ends in .gz."""
    data = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def corpus(folder: Path, names: Sequence[str], codes: Sequence[str] = ("de", "en"), ending: str = "") -> None:
    """Files NAME.CODE of three lines each."""
    for name in names:
        for code in codes:
            write(folder / f"{name}.{code}{ending}", [f"{name} {code} {line}" for line in range(3)])


class TestTextFiles:
    """Prefixes of files for each split."""

    def test_reads_both_sides_plain_or_packed(self, tmp_path: Path) -> None:
        folder = tmp_path / "my data = [ü]"
        corpus(folder, ["train"])
        corpus(folder, ["valid", "test"], ending=".gz")
        write(folder / "train.de.gz", ["the plain file comes first"])
        data = TextFiles("de", "en", f"{folder}/train", f"{folder}/valid", f"{folder}/test")
        data.check()
        assert (data.languages, data.name, data.splits()) == (("de", "en"), "text-de-en", ["train", "valid", "test"])
        for name in data.splits():
            split = data.read(name)
            assert split.name == name
            assert list(split.source) == [f"{name} de {line}" for line in range(3)]
            assert list(split.target) == [f"{name} en {line}" for line in range(3)]
            assert split.links is None

    def test_validation_on_the_training_text_is_said(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid"])
        apart, same = (TextFiles("de", "en", f"{tmp_path}/train", f"{tmp_path}/{name}") for name in ("valid", "train"))
        assert apart.notes() == []
        assert same.notes()[-1].startswith("3 of the 3 pairs of valid have a sentence that is also in the training")

    def test_several_tests_have_names_of_their_own(self, tmp_path: Path) -> None:
        for year in ("2016", "2017"):
            corpus(tmp_path / year, ["test"])
        corpus(tmp_path, ["train", "valid"])
        prefixes = [f"{tmp_path}/2016/test", f"{tmp_path}/2017/test", f"{tmp_path}/valid"]
        data = TextFiles("de", "en", f"{tmp_path}/train", f"{tmp_path}/valid", prefixes)
        assert data.tests() == ["2016-test", "2017-test", f"{tmp_path.name}-valid"]
        assert data.read("2017-test").source[0] == "test de 0"

    def test_names_stay_unique_whatever_the_folders(self) -> None:
        assert name_tests(["a/x", "b/y"]) == ["x", "y"]
        assert name_tests(["a/x", "a/x", "c/a/x"]) == ["a-x", "x-2", "x-3"]

    def test_lines_that_do_not_match(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid"])
        write(tmp_path / "train.en", ["one", "two"])
        with pytest.raises(UserError, match=r"train\.de has 3 lines and .*train\.en has 2"):
            TextFiles("de", "en", f"{tmp_path}/train", f"{tmp_path}/valid").read("train")

    def test_an_empty_set(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["valid"])
        for lines in ([], ["", " "]):
            write(tmp_path / "train.de", lines)
            write(tmp_path / "train.en", lines)
            with pytest.raises(UserError, match=r"train\.de and .*train\.en are empty"):
                TextFiles("de", "en", f"{tmp_path}/train", f"{tmp_path}/valid").read("train")

    def test_missing_files_and_splits(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid"], ["de", "en"], ".gz")
        data = TextFiles("de", "fr", f"{tmp_path}/train", f"{tmp_path}/valid")
        message = r"no train\.fr and no train\.fr\.gz in .*Did you mean.*It has: train\.de\.gz, train\.en\.gz, val"
        with pytest.raises(UserError, match=message):
            data.check()
        with pytest.raises(UserError, match=message):
            data.read("train")
        with pytest.raises(UserError, match="There is no folder"):
            TextFiles("de", "en", f"{tmp_path}/no/train", f"{tmp_path}/valid").read("train")
        with pytest.raises(UserError, match=r"no split 'vali'; it has train, valid\. Did you mean 'valid'"):
            data.read("vali")

    def test_wrong_settings(self) -> None:
        with pytest.raises(UserError, match=r"data\.train=PREFIX is missing"):
            TextFiles("de", "en", None, "valid")
        with pytest.raises(UserError, match=r"data\.valid=PREFIX is missing"):
            TextFiles("de", "en", "train", None)
        with pytest.raises(UserError, match="both 'de': name two languages"):
            TextFiles("de", "de", "train", "valid")
        with pytest.raises(UserError, match=r"data\.source=LANGUAGE is missing"):
            TextFiles(None, "de", "train", "valid")


def test_norwegian_survives_yaml() -> None:
    assert checked_languages(False, "en") == ("no", "en")
    with pytest.raises(UserError, match=r"data\.target=12"):
        checked_languages("de", 12)  # type: ignore[arg-type]


def test_names_are_safe_in_files() -> None:
    assert safe_name("text-zh/Hans-größer") == "text-zh-Hans-gr-er"
    assert safe_name("../..") == ""


class TestPresets:
    """Folders whose layout is known."""

    def test_tatoeba(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid", "test"], ending=".gz")
        data = Tatoeba(str(tmp_path), "en", "de")
        assert (data.name, data.tests()) == ("tatoeba-en-de", ["test"])
        assert data.read("test").source[0] == "test en 0"
        with pytest.raises(UserError, match=r"data\.root=DIR is missing"):
            Tatoeba(None)
        with pytest.raises(UserError, match="there is no such folder"):
            Tatoeba(str(tmp_path / "no"))

    def test_multi30k_has_the_tests_that_are_there(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "val", "test_2016_flickr"], ["de", "en", "cs"], ".gz")
        corpus(tmp_path, ["test_2017_flickr"], ["de", "en"], ".gz")
        assert Multi30k(str(tmp_path), "de", "en").tests() == ["test_2016_flickr", "test_2017_flickr"]
        czech = Multi30k(str(tmp_path), "cs", "en")
        assert (czech.name, czech.tests()) == ("m30k-cs-en", ["test_2016_flickr"])
        czech.check()
        assert czech.read("valid").source[0] == "val cs 0"
        assert czech.read("test_2016_flickr").name == "test_2016_flickr"
        with pytest.raises(UserError, match="no split 'test_2017_flickr'"):
            czech.read("test_2017_flickr")
        with pytest.raises(UserError, match=r"no train\.fr"):
            Multi30k(str(tmp_path), "fr", "en").check()
        with pytest.raises(UserError, match="only German and English"):
            Multi30k(None, "fr", "en")


def pairs(count: int) -> tuple[list[str], list[str]]:
    """So many pairs that have nothing in common."""
    return [f"satz {number}" for number in range(count)], [f"sentence {number}" for number in range(count)]


class TestUserFiles:
    """Whatever a user has."""

    @pytest.mark.parametrize("kind", ["two", "packed", "tsv", "tsv.gz"])
    def test_the_same_text_gives_the_same_splits_however_it_is_packed(self, kind: str, tmp_path: Path) -> None:
        source, target = pairs(300)
        if kind == "two":
            files = [write(tmp_path / "german.txt", source), write(tmp_path / "english.txt", target)]
        elif kind == "packed":
            files = [write(tmp_path / "a.gz", source), write(tmp_path / "b.gz", target)]
        else:
            files = [write(tmp_path / f"both.{kind}", [f"{a}\t{b}" for a, b in zip(source, target, strict=True)])]
        data = UserFiles([str(path) for path in files])
        data.check()
        assert data.splits() == ["train", "valid", "test"]
        assert [len(data.read(name).source) for name in data.splits()] == [260, 20, 20]
        held = data.read("test")
        assert [a.split()[1] for a in held.source] == [b.split()[1] for b in held.target]
        reference = UserFiles([str(write(tmp_path / "x.de", source)), str(write(tmp_path / "x.en", target))])
        assert held == reference.read("test")

    def test_it_says_what_it_chose(self, tmp_path: Path) -> None:
        source, target = pairs(300)
        files = [
            str(write(tmp_path / "corpus.de", [*source, "leer", ""])),
            str(write(tmp_path / "corpus.en", [*target, "", "x"])),
        ]
        notes = UserFiles(files).notes()
        assert "2 of 302 pairs" in notes[0]
        assert "one side is empty" in notes[0]
        assert notes[1].startswith("de to en: 300 pairs from")
        assert notes[2].startswith("Held out: 20 for valid and 20 for test. None of their sentences")

    def test_everything_can_be_overridden(self, tmp_path: Path) -> None:
        source, target = pairs(300)
        files = [str(write(tmp_path / "corpus.de", source)), str(write(tmp_path / "corpus.en", target))]
        few = UserFiles(files, "deu", "eng", valid_pairs=3, test_pairs=0)
        assert (few.languages, few.tests()) == (("deu", "eng"), [])
        assert len(few.read("valid").source) == 3
        assert len(few.read("train").source) == 297
        assert UserFiles(files, seed=1).read("valid") == UserFiles(files, seed=1).read("valid")
        assert UserFiles(files, seed=1).read("valid") != UserFiles(files, seed=2).read("valid")

    def test_given_validation_files_are_taken_and_compared(self, tmp_path: Path) -> None:
        source, target = pairs(300)
        files = [str(write(tmp_path / "corpus.de", source)), str(write(tmp_path / "corpus.en", target))]
        valid = str(write(tmp_path / "valid.tsv", ["SATZ 1\tnew", "fresh\talso fresh"]))
        data = UserFiles(files, valid=valid, test_pairs=0)
        assert len(data.read("train").source) == 300
        assert list(data.read("valid").source) == ["SATZ 1", "fresh"]
        assert any(
            "1 of the 2 pairs of valid have a sentence that is also in the training text" in n for n in data.notes()
        )

    def test_more_columns_than_two(self, tmp_path: Path) -> None:
        source, target = pairs(100)
        lines = [f"{a}\t{b}\tCC-BY 2.0 (France)" for a, b in zip(source, target, strict=True)]
        path = str(write(tmp_path / "deu.txt", [*lines, ""]))
        data = UserFiles(path)
        assert "has 3 columns; columns 1 and 2 are used. Others: data.columns=[A,B]." in data.notes()[0]
        assert data.read("train").source[0].startswith("satz")
        assert UserFiles(path, columns=(2, 1)).read("train").source[0].startswith("sentence")

    def test_wrong_files(self, tmp_path: Path) -> None:
        one = str(write(tmp_path / "one.txt", ["a", "b"]))
        with pytest.raises(
            UserError, match=r"one\.txt, line 1: 1 column where 2 are needed.*data\.files=\[SOURCE_FILE"
        ):
            UserFiles([one]).read("train")
        tsv = str(write(tmp_path / "two.tsv", ["a\tb", "", "c"]))
        with pytest.raises(UserError, match=r"two\.tsv, line 3"):
            UserFiles(tsv).read("train")
        with pytest.raises(UserError, match=r"data\.files takes .*it got 3 files"):
            UserFiles([one, one, one])
        with pytest.raises(UserError, match="it got 0 files"):
            UserFiles(None)
        with pytest.raises(UserError, match="twice"):
            UserFiles([one, one])
        with pytest.raises(UserError, match=r"data\.valid_pairs=-1: must be at least 0"):
            checked(UserFiles, {"files": one, "valid_pairs": -1}, "data")
        assert UserFiles(one, valid_pairs=0, test_pairs=0).splits() == ["train"]
        with pytest.raises(UserError, match=r"data\.columns=\[0,1\]: must be a list of 2, written \[a,b\]"):
            checked(UserFiles, {"files": one, "columns": [0, 1]}, "data")
        empty = str(write(tmp_path / "empty.tsv", ["\t", ""]))
        with pytest.raises(UserError, match=r"empty\.tsv is empty"):
            UserFiles(empty).notes()
        with pytest.raises(UserError, match="no file"):
            UserFiles(str(tmp_path / "no.tsv")).check()

    @pytest.mark.parametrize(
        ("files", "name"),
        [
            (["corpus.de", "corpus.en"], "files-de-en"),
            (["left.txt", "right.txt"], "left-right"),
            (["opus.de-fr.tsv.gz"], "files-de-fr"),
            (["数据.tsv"], "files"),
        ],
    )
    def test_names_from_file_names(self, files: list[str], name: str) -> None:
        assert UserFiles(files).name == name

    def test_files_keep_the_endings_that_they_have(self, tmp_path: Path) -> None:
        for name in ("train.cn", "train.english", "valid.cn", "valid.english"):
            write(tmp_path / name, ["我爱你。"])
        data = TextFiles("cn", "english", f"{tmp_path}/train", f"{tmp_path}/valid")
        assert (data.languages, data.name) == (("zh", "en"), "text-zh-en")
        assert data.read("train").source == ["我爱你。"]


class TestLinks:
    """Word links of the training pairs, beside any data set in files."""

    def test_prepared_splits_take_them_for_training_alone(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid", "val", "test", "test_2016_flickr"])
        links = str(write(tmp_path / "links.gz", ["0-0 1-1", "0p1", ""]))
        prefixes = (f"{tmp_path}/train", f"{tmp_path}/valid", f"{tmp_path}/test")
        text = TextFiles("de", "en", *prefixes, links)
        for data in (text, Tatoeba(str(tmp_path), train_links=links), Multi30k(str(tmp_path), train_links=links)):
            assert data.read("train").links == ["0-0 1-1", "0p1", ""]
            assert data.read("valid").links is None
            assert data.read(data.tests()[0]).links is None

    def test_they_go_where_their_pairs_go(self, tmp_path: Path) -> None:
        """Pair n is linked by the number n in its text; empty pairs fall away, others are held out."""
        source = [" ".join(["w"] * (row % 7)) + f" s{row}" if row % 10 else "" for row in range(60)]
        target = [f"t{row}" for row in range(60)]
        files = [str(write(tmp_path / name, side)) for name, side in (("a.de", source), ("a.en", target))]
        naacl = [f"{row + 1} {row % 7 + 1} 1" for row in range(60) if row % 10]
        links = write(tmp_path / "links", [f"{row % 7}-0" if row % 10 else "" for row in range(60)])
        data = UserFiles(files, valid_pairs=9, test_pairs=8, train_links=str(links))
        train = data.read("train")
        assert train.links is not None
        assert len(train.links) == len(train.source) < 54
        assert train.links == [f"{int(text[1:]) % 7}-0" for text in train.target]
        assert data.read("valid").links is data.read("test").links is None
        whole = UserFiles(files, valid=files, test_pairs=0, train_links=str(links)).read("train")
        assert len(whole.links or []) == 54
        with pytest.raises(UserError, match="names word 2 of the source, which has 2 words "):  # these count from 1
            UserFiles(files, train_links=str(write(tmp_path / "one", naacl))).read("train")

    def test_a_pair_without_a_line_of_links_is_missed(self, tmp_path: Path) -> None:
        corpus(tmp_path, ["train", "valid"])
        links = str(write(tmp_path / "links", ["0-0"]))
        data = TextFiles("de", "en", f"{tmp_path}/train", f"{tmp_path}/valid", train_links=links)
        with pytest.raises(UserError, match="links has 1 line and the text has 3 lines"):
            data.read("train")
