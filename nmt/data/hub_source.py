"""Translation data sets of the Hugging Face Hub, or in a local folder that `datasets` can read.

The network is used only if a user names a data set of the Hub; the library caches what it has downloaded.
"""

import contextlib
import csv
import functools
import re
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data import stored
from nmt.data.dataset import DataSource, Split, safe_name
from nmt.data.holdout import divide
from nmt.data.languages import checked_languages, language_codes
from nmt.data.streams import missing_file
from nmt.system.errors import UserError, nearest
from nmt.system.limits import NotNegative, Positive, Seed
from nmt.text.canonical import any_text

#: Usual names of validation splits on the Hub.
_VALID = ("validation", "valid", "val", "dev")
#: Formats of a single file, by the ending of its name.
_READERS = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}
#: Seconds to wait for an answer of the Hub.
_PATIENCE = 10.0
#: Rows that are read at a time.
_ROWS = 16 * 1024


class Hub(DataSource):
    """A data set with a translation in each row: a column of {language: sentence}, or one column per language.

    `configs/data/hub.yaml` explains the settings. A local folder is written by `save_to_disk`, or has parquet, JSON or
    CSV files.

    Raises:
        UserError: the path is missing, or the languages are the same.
    """

    def __init__(
        self,
        path: str | None,
        name: str | None = None,
        source: str = "de",
        target: str = "en",
        train: str = "train",
        valid: str | None = None,
        test: str | Sequence[str] | None = None,
        source_column: str | None = None,
        target_column: str | None = None,
        valid_pairs: Positive | None = None,
        test_pairs: NotNegative | None = None,
        revision: str | None = None,
        seed: Seed = 1,
    ) -> None:
        if not path:
            raise UserError(
                "data.path=NAME is missing: a data set of the Hub, such as data.path=Helsinki-NLP/opus_books "
                "data.name=de-en, or a local folder."
            )
        self._keys = checked_languages(source, target)
        self.languages = language_codes(self._keys)
        self.name = safe_name(f"{Path(path).name}-{self.languages[0]}-{self.languages[1]}")
        self._path, self._configuration, self._revision = path, name, revision
        self._train, self._valid = train, valid
        self._test = test if test is None else [test] if isinstance(test, str) else list(test)
        self._columns = (source_column, target_column)
        self._sizes = {"valid": valid_pairs, "test": test_pairs}
        self._seed = seed
        self._held: dict[str, Split] | None = None
        self._notes: list[str] = []

    def tests(self) -> list[str]:
        """The names of the test splits, or ["test"] for held-out pairs (downloads the data set)."""
        names = [name for name in self._names() if name not in ("train", "valid")]
        return names if names or self._sizes["test"] == 0 else ["test"]

    def check(self) -> None:
        """Download the data set; UserError if that fails or a split is missing."""
        for name in self._names().values():
            self._table(name)

    def read(self, split: str) -> Split:
        """See `DataSource.read`; UserError if the data set cannot be downloaded or a column is missing."""
        if split not in self.splits():
            raise self.unknown_split(split)
        if split != "train" and (name := self._names().get(split)) is not None:
            return Split(split, *self._pairs(name))
        return self._divided()[split]

    def notes(self) -> list[str]:
        """Where validation and test pairs come from (downloads the data set)."""
        self._divided()
        return list(self._notes)

    def _divided(self) -> dict[str, Split]:
        """The training split, and the pairs held out of it for missing splits."""
        if self._held is None:
            names, train = self._names(), Split("train", *self._pairs(self._train))
            wanted = {name: self._sizes[name] for name in ("valid", *self.tests()) if name not in names}
            empty = train.empty_rows() if wanted else []
            counted = f"{len(empty):,} of {len(train.source):,}"
            train = train.without(empty)
            self._held, held_out = divide(train, wanted, self._seed)
            tests = ", ".join(name for split, name in names.items() if split not in ("train", "valid"))
            self._notes = [
                f"{self._path}: {len(train.source):,} training pairs; validation split {names.get('valid', 'none')}, "
                f"test {tests or 'none'}.",
                *([f"{counted} pairs dropped: one side is empty."] if empty else []),
                *held_out,
            ]
        return self._held

    def _names(self) -> dict[str, str]:
        """The name of each split in the data set, by the name that `read` accepts."""
        tables = self._tables
        valid = self._valid or next((name for name in _VALID if name in tables), None)
        tests = [name for name in tables if name.startswith("test")] if self._test is None else self._test
        for name in map(str, tests):
            if "/" in name or name in ("", ".", ".."):  # the split's results go into a folder of its name
                raise UserError(
                    f"{self._path} has a split called {name!r}, which is not a valid folder name. Rename it."
                )
        of_tests = {f"test-{name}" if name in ("train", "valid") else name: name for name in tests}
        return {"train": self._train, **({} if valid is None else {"valid": valid}), **of_tests}

    def _table(self, split: str) -> Any:
        if split not in self._tables:
            raise UserError(
                f"{self._path} has no split {split!r}; it has {', '.join(self._tables)}.{nearest(split, self._tables)} "
                "Name it by data.train=, data.valid= or data.test=; data.valid=null holds validation pairs out."
            )
        return self._tables[split]

    def _pairs(self, split: str) -> tuple[Sequence[str], Sequence[str]]:
        """Both sides of a split; a line break inside a sentence becomes a space. Large tables stay in their files."""
        table = self._table(split)
        source, target = (_cells(table, *names, self.known) for names in self._find_columns(table.features))
        if not any_text(source, target):
            raise UserError(f"The split {split} of {self._path} is empty: no row has text on both sides.")
        return source, target

    def _find_columns(self, features: Mapping[str, Any]) -> list[tuple[str, str | None]]:
        """For each side the column, and the key in it if the column holds one sentence per language."""
        matches: list[tuple[str, str | None]] = []
        keys = {name: _keys(feature) for name, feature in features.items()}
        for side, column, language in zip(("source", "target"), self._columns, self._keys, strict=True):
            if column is not None and column not in keys:
                raise UserError(
                    f"data.{side}_column={column} is not a column of {self._path}; it has {', '.join(keys)}."
                    f"{nearest(column, keys)}"
                )
            plain = column or language
            holders = [name for name in keys if language in keys[name] and column in (None, name)]
            if keys.get(plain) == []:
                matches.append((plain, None))
            elif holders:
                matches.append((holders[0], language))
            else:
                have = ", ".join(sorted({key for name in keys for key in keys[name]}))
                raise UserError(
                    f"{self._path} has no column for {language!r}: its columns are {', '.join(keys)}"
                    f"{have and ', with the languages '}{have}. Give data.source= and data.target= as they are called "
                    "there, or data.source_column= and data.target_column=."
                )
        if matches[0] == matches[1]:
            raise UserError(f"data.source_column={matches[0][0]} and data.target_column= name the same column.")
        return matches

    @functools.cached_property
    def _tables(self) -> Mapping[str, Any]:
        """The data set's splits by name."""
        return load_tables(self._path, self._configuration, self._revision)


def load_tables(path: str, name: str | None, revision: str | None) -> Mapping[str, Any]:
    """The splits of a data set of the Hub or in a local folder.

    Raises:
        UserError: the data set cannot be reached, does not exist, or cannot be read.
    """
    import datasets  # type: ignore[import-untyped]  # slow to import

    place = Path(path).expanduser()
    reader = next((_READERS[ending] for ending in place.suffixes[::-1] if ending in _READERS), None)
    if reader is not None and not place.exists():
        raise missing_file(place)
    if reader is None and place.is_file():
        raise UserError(f"data.path={path}: a file must end in {', '.join(_READERS)}. Text files are for data.files=.")
    try:
        if any((place / mark).is_file() for mark in ("dataset_dict.json", "state.json")):
            tables = datasets.load_from_disk(str(place))
        elif place.is_dir():
            tables = datasets.load_dataset(str(place), name, **_as_text(place.rglob("*")))
        elif reader is not None:
            more = {"sep": "\t"} if ".tsv" in place.suffixes else {}
            tables = datasets.load_dataset(reader, data_files=str(place), **more, **_as_text([place]))
        else:
            with _offline_if_unreachable():
                tables = datasets.load_dataset(path, name, revision=revision)
    except Exception as error:  # the library does not document which errors it raises
        inner: BaseException = error
        while place.exists() and inner.__cause__ is not None:  # the innermost cause names the line
            inner = inner.__cause__
        reason = (str(inner).strip() or type(inner).__name__).splitlines()[0]
        cure = "See data.path= (owner/name, as on the Hub), data.name= (its configuration) and data.revision=."
        if place.exists():
            cure = (
                "A folder must be written by `save_to_disk`, or contain parquet, JSON or CSV files; or name one file."
            )
        elif isinstance(error, ConnectionError):
            cure = (
                "The Hub cannot be reached and the data set is not in its cache: connect to a network, or use local "
                "files (data.root=DIR, data=text, data.files=[...]) or a local folder (data.path=DIR)."
            )
        raise UserError(f"Cannot read the data set {path}: {reason}. {cure}") from error
    return tables if isinstance(tables, Mapping) else {"train": tables}


def _as_text(files: Iterable[Path]) -> dict[str, Any]:
    """Options of pandas if all files are CSV or TSV: "null" is a word, and in TSV a quote is an ordinary character."""
    endings = {ending for path in files for ending in path.suffixes if ending in _READERS}
    if not endings or not endings <= {".csv", ".tsv"}:
        return {}
    return {"keep_default_na": False} | ({"quoting": csv.QUOTE_NONE} if endings == {".tsv"} else {})


@contextlib.contextmanager
def _offline_if_unreachable() -> Iterator[None]:
    """Set the library offline if the Hub is unreachable: it would retry for half a minute, and print each attempt.

    Its cache is still read. No setting limits the retries (datasets 4, huggingface_hub 1).
    """
    import datasets
    import huggingface_hub

    host = urllib.parse.urlsplit(huggingface_hub.constants.ENDPOINT)
    before = datasets.config.HF_HUB_OFFLINE, huggingface_hub.constants.HF_HUB_OFFLINE
    try:
        if not urllib.request.getproxies():  # a proxy may reach the Hub where we cannot
            socket.create_connection((host.hostname or "", host.port or 443), timeout=_PATIENCE).close()
    except OSError:
        datasets.config.HF_HUB_OFFLINE = huggingface_hub.constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE, huggingface_hub.constants.HF_HUB_OFFLINE = before


def _keys(feature: Any) -> list[str]:
    """The languages of a column that holds {language: sentence}; [] for any other column."""
    return list(feature) if isinstance(feature, Mapping) else list(getattr(feature, "languages", None) or [])


def _cells(table: Any, name: str, key: str | None, known: Path | None) -> Sequence[str]:
    """The sentences in a column, or in a key of its cells; large tables are stored (UserError for other values)."""
    column = table.select_columns([name])

    def lines() -> Iterator[str]:
        for first in range(0, len(column), _ROWS):
            cells = column[first : first + _ROWS][name]
            yield from (_line(cell if key is None or cell is None else cell[key], name) for cell in cells)

    if table.data.nbytes < stored.LARGE:
        return list(lines())
    files = [Path(file["filename"]) for file in table.cache_files]
    times = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return stored.stored_lines(lines, f"{table._fingerprint} {times} column {name} {key}", known)


def _line(cell: Any, column: str) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise UserError(f"The column {column} holds {type(cell).__name__}, not text: name another column.")
    return re.sub(r"\r?\n", " ", cell)
