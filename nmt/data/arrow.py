"""Tables in the cache folder: memory-mapped Arrow files with checksums, shared by all runs."""

import contextlib
import errno
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from nmt.system.errors import UserError
from nmt.system.files import appearing, unwritable
from nmt.system.integrity import checksum

_TABLE, _ABOUT = "table.arrow", "about.json"
_DAY = 86_400.0  # seconds

#: Yields the record batches of a table, and adds facts about them to the dictionary that it receives.
Batches = Callable[[dict[str, Any]], Iterator[Any]]


def cached_table(folder: Path, schema: Any, batches: Batches) -> tuple[Any, dict[str, Any]]:
    """The table in a folder of the cache and its facts; made by `batches` if it is missing or damaged.

    Raises:
        UserError: the cache folder cannot be written.
    """
    for _ in range(10):  # other runs may write it, or damage it, at the same time
        try:
            if folder.exists():
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
                    return _read(folder)
                _remove(folder)
            with appearing(folder) as temporary:
                _write(temporary, schema, batches)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) or not folder.exists():
                raise unwritable(folder.parent, error, "cache=FOLDER") from error
    raise UserError(f"The cache folder {folder} is damaged and cannot be replaced. Delete it.")


def temporary_table(cache: Path | None, schema: Any, batches: Batches) -> tuple[Any, dict[str, Any]]:
    """A table, and its facts, in a temporary file in `cache`, or in the system's temporary folder.

    Raises:
        UserError: the folder cannot be written.
    """
    place = cache or Path(tempfile.gettempdir())
    try:
        place.mkdir(parents=True, exist_ok=True)
        for left in place.glob(".table.*"):  # left by a killed process, or by Windows, which keeps mapped files
            if left.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".table.", dir=place, ignore_cleanup_errors=True) as folder:
            _write(Path(folder), schema, batches)
            return _read(Path(folder))
    except OSError as error:
        raise unwritable(place, error, "cache=FOLDER") from error


def _write(folder: Path, schema: Any, batches: Batches) -> None:
    """Write a table, its facts, and a checksum."""
    facts: dict[str, Any] = {}
    path = folder / _TABLE
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches(facts):
            writer.write_batch(batch)
    (folder / _ABOUT).write_text(json.dumps({"facts": facts, "checksum": checksum(path)}), encoding="utf-8")


def _read(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Map the folder's table into memory (raises several kinds of errors if the table is damaged)."""
    about, path = json.loads((folder / _ABOUT).read_text(encoding="utf-8")), folder / _TABLE
    if checksum(path) != about["checksum"]:
        raise ValueError(folder)
    return pa.ipc.open_stream(pa.memory_map(str(path))).read_all(), dict(about["facts"])


def _remove(folder: Path) -> None:
    """Remove a damaged folder, or a file in its place, in one step; a mapped file stays readable."""
    aside = Path(tempfile.mkdtemp(prefix=".damaged.", dir=folder.parent))
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside / folder.name)
    shutil.rmtree(aside, ignore_errors=True)
