"""Tables in the cache folder: memory-mapped Arrow files, shared by all runs, whose damage is noticed."""

import contextlib
import errno
import json
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from nmt.system.errors import UserError
from nmt.system.files import appearing, unwritable

_TABLE, _ABOUT = "table.arrow", "about.json"
_DAY = 86_400.0  # in seconds

#: Makes the record batches of a table, and writes down facts about them.
Batches = Callable[[dict[str, Any]], Iterator[Any]]


class _DamagedError(Exception):
    """A folder of the cache does not match its description."""


def cached_table(folder: Path, schema: Any, batches: Batches) -> tuple[Any, dict[str, Any]]:
    """The table in a folder of the cache and its facts; made by `batches` if it is missing or damaged.

    Raises:
        UserError: the cache folder cannot be written.
    """
    for _ in range(10):  # other runs may write it, or damage it, at the same time
        try:
            with contextlib.suppress(FileNotFoundError):
                try:
                    return _read(folder)
                except _DamagedError:
                    _remove(folder)
            with appearing(folder) as temporary:
                _write(temporary, schema, batches)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) or not folder.exists():
                raise unwritable(folder.parent, error, "cache=FOLDER") from error
    raise UserError(f"The cache folder {folder} is damaged and cannot be replaced. Delete it.")


def temporary_table(cache: Path | None, schema: Any, batches: Batches) -> tuple[Any, dict[str, Any]]:
    """A table in a file that nobody else sees and that ends with it, in the cache or where temporary files go.

    Raises:
        UserError: the folder cannot be written.
    """
    place = cache or Path(tempfile.gettempdir())
    try:
        place.mkdir(parents=True, exist_ok=True)
        for left in place.glob(".table.*"):  # by a killed process, or by Windows, which removes no mapped file
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
    about = {"facts": facts, "bytes": path.stat().st_size, "checksum": _checksum(path)}
    (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")


def _read(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Map the folder's table into memory.

    Raises:
        FileNotFoundError: the folder does not exist.
        _DamagedError: the table does not match its description.
    """
    if not folder.exists():
        raise FileNotFoundError(folder)
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        path = folder / _TABLE
        if path.stat().st_size != about["bytes"] or _checksum(path) != about["checksum"]:
            raise _DamagedError(folder)
        return pa.ipc.open_stream(pa.memory_map(str(path))).read_all(), dict(about["facts"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise _DamagedError(folder) from error


def _checksum(path: Path) -> int:
    """CRC-32 of a file: detects damage at a gigabyte per second."""
    checksum = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            checksum = zlib.crc32(data, checksum)
    return checksum


def _remove(folder: Path) -> None:
    """Remove a damaged folder, or a file in its place, in one step; a mapped file stays readable."""
    aside = Path(tempfile.mkdtemp(prefix=".damaged.", dir=folder.parent))
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside / folder.name)
    shutil.rmtree(aside, ignore_errors=True)
