"""Data sets in text files: prepared splits (`TextFiles`, `Multi30k`, `Tatoeba`) and a user's own files (`UserFiles`).

`lines` defines a line, `languages` reads the languages from file names, `holdout` divides a corpus without splits.
"""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nmt.data.columns import Wanted, guess_languages
from nmt.data.dataset import DataSource, Split, safe_name
from nmt.data.document_lines import Documents
from nmt.data.holdout import divide, shared_note, shared_pairs
from nmt.data.hub_source import Hub
from nmt.data.languages import UNNAMED, checked_languages, language_codes
from nmt.data.parallel import ParallelLines, find_folder, read_files, with_links
from nmt.data.streams import decoding, name_of
from nmt.system.errors import UserError, nearest
from nmt.system.files import PACKED
from nmt.system.limits import NotNegative, Positive, Seed

#: A warning is given if more than this share of the validation pairs have a sentence of the training text.
SHARED = 0.2


class TextFiles(DataSource):
    """Two files per split, PREFIX.SOURCE and PREFIX.TARGET; `configs/data/text.yaml` explains the settings.

    Raises:
        UserError: a prefix is missing, or both languages are the same.
    """

    label = "text"

    def __init__(
        self,
        source: str | None,
        target: str | None,
        train: str | None,
        valid: str | None,
        test: str | Sequence[str] | None = None,
        train_links: str | None = None,
        documents: Documents | None = None,
    ) -> None:
        self._documents = documents
        self._endings = checked_languages(source, target)
        self.languages = language_codes(self._endings)
        self._train_links = train_links
        self.name = safe_name(f"{self.label}-{self.languages[0]}-{self.languages[1]}")
        if not train or not valid:
            raise UserError(
                f"data.{'valid' if train else 'train'}=PREFIX is missing: DIR/train means DIR/train.{source} and "
                f"DIR/train.{target}. (To hold validation and test pairs out of one corpus, "
                "give data.files=[SOURCE_FILE,TARGET_FILE] instead.)"
            )
        prefixes = [] if not test else [test] if isinstance(test, str) else list(test)
        self._prefixes = {"train": train, "valid": valid, **dict(zip(name_tests(prefixes), prefixes, strict=True))}

    def tests(self) -> list[str]:
        """The last part of each test prefix."""
        return [name for name in self._prefixes if name not in ("train", "valid")]

    def check(self) -> None:
        """Raise UserError if a file is missing."""
        for name in self._prefixes:
            self._paths(name)

    def read(self, split: str) -> Split:
        """See `DataSource.read`; UserError for files that are missing, unequal in length, empty or not UTF-8."""
        if split not in self._prefixes:
            raise self.unknown_split(split)
        lines = self._lines(split)
        pairs = Split(split, lines.source, lines.target, documents=lines.documents)
        return pairs if split != "train" else with_links(pairs, self._train_links, self.known)

    def notes(self) -> list[str]:
        """Warnings about the training and validation pairs (reads the files)."""
        train, valid = map(self._lines, ("train", "valid"))
        text, held = (Split(name, each.source, each.target) for name, each in (("train", train), ("valid", valid)))
        shared = shared_pairs(held, text)
        leak = [shared_note("valid", shared, len(held.source))] if shared > SHARED * len(held.source) else []
        return [*train.doubts(), *valid.doubts(), *leak]

    def _lines(self, split: str) -> ParallelLines:
        files, endings = self._paths(split), self._endings
        return read_files(files, documents=self._documents, known=self.known, plain=True, endings=endings)

    def _paths(self, split: str) -> tuple[Path, Path]:
        prefix = Path(self._prefixes[split]).expanduser()
        if self._documents == "files":
            return find_folder(prefix), prefix
        return find_file(prefix, self._endings[0]), find_file(prefix, self._endings[1])


class Tatoeba(TextFiles):
    """A folder with train, valid and test of both languages, such as train.de.gz."""

    label = "tatoeba"

    def __init__(
        self, root: str | None, source: str = "de", target: str = "en", train_links: str | None = None
    ) -> None:
        if root is None:
            raise UserError("data.root=DIR is missing: the folder with train, valid and test of both languages.")
        folder = _data_root(root)
        super().__init__(source, target, f"{folder}/train", f"{folder}/valid", f"{folder}/test", train_links)


class Multi30k(TextFiles):
    """Multi30k, image captions in de, en, fr and cs (Elliott et al. 2016), raw text.

    Read from a folder with train, val, test_2016_flickr and test_2017_flickr (Czech has no 2017), or without a folder
    from the Hub, which has only German, English and the test set of 2016.
    """

    label = "m30k"
    TESTS = ("test_2016_flickr", "test_2017_flickr")

    def __init__(
        self, root: str | None, source: str = "de", target: str = "en", train_links: str | None = None
    ) -> None:
        languages, tests = checked_languages(source, target), list(self.TESTS[:1])
        self._hub = None
        if root is not None:
            folder = _data_root(root)
            tests = [test for test in self.TESTS if all(_candidates(folder / test, code) for code in languages)]
        elif {*languages} == {"de", "en"}:
            folder = Path("multi30k")
            self._hub = Hub("bentrevett/multi30k", None, *languages, "train", "validation", "test")
        else:
            raise UserError(
                "On the Hub, Multi30k has only German and English. For other languages name the folder of its files: "
                "data.root=DIR."
            )
        prefixes = [f"{folder}/{test}" for test in tests]
        super().__init__(source, target, f"{folder}/train", f"{folder}/val", prefixes, train_links)

    def check(self) -> None:
        """Raise UserError if training or validation files are missing."""
        if self._hub is None:
            super().check()

    def notes(self) -> list[str]:
        """See `TextFiles.notes`."""
        return super().notes() if self._hub is None else []

    def read(self, split: str) -> Split:
        """See `DataSource.read`."""
        if self._hub is None or split not in self.splits():
            return super().read(split)
        pairs = self._hub.read("test" if split == self.TESTS[0] else split)._replace(name=split)
        return pairs if split != "train" else with_links(pairs, self._train_links)


class UserFiles(DataSource):
    """Two files, or one table; `configs/data/files.yaml` explains the settings.

    Validation and test pairs are held out (see `nmt.data.holdout`), unless files for them are given.

    Raises:
        UserError: `files` is not one or two files, or a number is out of range.
    """

    def __init__(
        self,
        files: str | Sequence[str] | None,
        source: str | None = None,
        target: str | None = None,
        valid: str | Sequence[str] | None = None,
        test: str | Sequence[str] | None = None,
        valid_pairs: NotNegative | None = None,
        test_pairs: NotNegative | None = None,
        columns: tuple[Positive | str, Positive | str] | None = None,
        seed: Seed = 1,
        train_links: str | None = None,
        documents: Documents | Positive | None = None,
        lines: Literal["auto", "plain"] = "auto",
        encoding: str | None = None,
    ) -> None:
        self._decoding = functools.partial(decoding, encoding, "data.encoding")
        self._train_links, self._documents, self._plain = train_links, documents, lines == "plain"
        self._files = _one_or_two("data.files", files)
        self._given = {
            name: _one_or_two(f"data.{name}", value)
            for name, value in (("valid", valid), ("test", test))
            if value is not None
        }
        self._sizes = {"valid": valid_pairs, "test": test_pairs}
        self._columns: Wanted = columns
        self._seed = seed
        with self._decoding():
            guessed = guess_languages(self._files, columns, (source, target), self._plain)
        names = checked_languages(guessed[0] if source is None else source, guessed[1] if target is None else target)
        self.languages = language_codes(names)
        stems = [path.name.split(".")[0] for path in self._files]
        named = not {*self.languages} & {*UNNAMED}
        self.name = safe_name("-".join(["files", *self.languages] if named else stems)) or "files"
        self._splits: dict[str, Split] | None = None
        self._notes: list[str] = []
        self._unchecked: list[ParallelLines] = []

    def has_columns_of(self, languages: tuple[str, str]) -> bool:
        """Whether the text is one table, with these languages in its header or in its name."""
        with self._decoding():
            return len(self._files) == 1 and guess_languages(self._files, None, languages, self._plain) == languages

    def tests(self) -> list[str]:
        """["test"]; [] with test_pairs=0 and no test file."""
        return [] if self._sizes["test"] == 0 and "test" not in self._given else ["test"]

    def splits(self) -> list[str]:
        """As `DataSource.splits`, without "valid" if valid_pairs=0 and there is no validation file."""
        has_none = self._sizes["valid"] == 0 and "valid" not in self._given
        return [name for name in super().splits() if name != "valid" or not has_none]

    @property
    def undivided(self) -> int | None:
        """The number of pairs if no setting decides which are held out; otherwise None."""
        return len(self._corpus.source) if not self._given and {*self._sizes.values()} == {None} else None

    def hold_out(self, valid: int, test: int | None) -> None:
        """Set the numbers of held-out pairs; call this before any split is read."""
        self._sizes = {"valid": valid, "test": test}

    def check(self) -> None:
        """Raise UserError if a file is missing or cannot be read."""
        self._load()

    def read(self, split: str) -> Split:
        """See `DataSource.read`; UserError for files that are missing, unequal in length, empty or not UTF-8."""
        if split not in self.splits():
            raise self.unknown_split(split)
        return self._load()[split]

    def notes(self) -> list[str]:
        """Languages, numbers of pairs, held-out pairs and warnings (reads the files)."""
        self._load()
        while self._unchecked:
            self._notes += self._unchecked.pop(0).doubts()
        return list(self._notes)

    def _load(self) -> dict[str, Split]:
        if self._splits is not None:
            return self._splits
        corpus = self._corpus
        keys = zip(("source", "target"), self.languages, strict=True)
        unnamed = " ".join(f"data.{side}=CODE" for side, code in keys if code in UNNAMED)
        named = f"Languages not named ({unnamed})" if unnamed else " to ".join(self.languages)
        notes = [f"{named}: {len(corpus.source):,} pairs from {_names(self._files)}."]
        given = {name: self._pairs(name, files) for name, files in self._given.items()}
        notes += [f"{name}: {len(given[name].source):,} pairs from {_names(self._given[name])}." for name in given]
        wanted = {name: size for name, size in self._sizes.items() if name not in given and size != 0}
        divided, held_out = divide(corpus, wanted, self._seed, self.known)
        self._notes += notes + held_out
        for name, split in given.items():
            if shared := shared_pairs(split, divided["train"]):
                self._notes.append(shared_note(name, shared, len(split.source)))
        self._splits = {**given, **divided}
        return self._splits

    @functools.cached_property
    def _corpus(self) -> Split:
        return self._pairs("train", self._files, self._train_links)

    def _pairs(self, name: str, files: Sequence[Path], links: str | None = None) -> Split:
        """The pairs of one or two files that have text on both sides, with their links if `links` names a file."""
        with self._decoding():
            lines = read_files(files, self._columns, self._documents, self.known, self.languages, self._plain)
        self._notes += lines.notes
        self._unchecked.append(lines)
        pairs = with_links(Split(name, lines.source, lines.target, documents=lines.documents), links, self.known)
        if empty := pairs.empty_rows():
            count = f"{len(empty):,} of {len(lines.source):,} pairs of {_names(files)}"
            self._notes.append(f"{count} dropped: one side is empty.")
        return pairs.without(empty, self.known)


def name_tests(prefixes: Sequence[str]) -> list[str]:
    """A name for each test prefix: its last part; if that is taken, with its folder before or a number after it."""
    names: list[str] = []
    bases = [Path(prefix).name for prefix in prefixes]
    for prefix, base in zip(prefixes, bases, strict=True):
        usable = base not in ("train", "valid") and bases.count(base) == 1
        name = base if usable else f"{Path(prefix).absolute().parent.name}-{base}"
        others = (f"{base}-{number}" for number in itertools.count(2))
        names.append(next(each for each in (name, *itertools.islice(others, len(bases))) if each not in names))
    return names


def find_file(prefix: Path, language: str) -> Path:
    """PREFIX.LANGUAGE, or PREFIX.LANGUAGE.gz, .xz or .bz2 (UserError that lists the folder if all are missing)."""
    paths = _candidates(prefix, language)
    if paths:
        return paths[0]
    wanted = f"{prefix.name}.{language}"
    if not prefix.parent.is_dir():
        raise UserError(f"There is no folder {prefix.parent} (looked for {wanted} in it).")
    names = sorted(entry.name for entry in prefix.parent.iterdir() if entry.is_file())
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") if names else "nothing"
    folder = prefix.parent.resolve()
    raise UserError(f"There is no {wanted} and no {wanted}.gz in {folder}.{nearest(wanted, names)} It has: {listed}.")


def _candidates(prefix: Path, language: str) -> list[Path]:
    paths = [prefix.with_name(f"{prefix.name}.{language}{ending}") for ending in ("", *PACKED)]
    return [path for path in paths if path.exists()]


def _data_root(root: str) -> Path:
    """The folder of a preset (UserError if it is missing)."""
    if not (folder := Path(root).expanduser()).is_dir():
        raise UserError(f"data.root={root}: there is no such folder.")
    return folder


def _one_or_two(key: str, files: str | Sequence[str] | None) -> list[Path]:
    paths = [] if files is None else [files] if isinstance(files, str) else list(files)
    if not 1 <= len(paths) <= 2:
        raise UserError(f"{key} takes [SOURCE_FILE,TARGET_FILE], or one tab-separated file; it got {len(paths)} files.")
    if len(set(paths)) < len(paths):
        raise UserError(f"{key} names {paths[0]} twice: give the source file and the target file.")
    return [Path(path).expanduser() for path in paths]


def _names(files: Sequence[Path]) -> str:
    return " and ".join(map(name_of, files))
