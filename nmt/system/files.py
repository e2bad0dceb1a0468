"""Atomic writing of files and folders. All code writes files with this module."""

import bz2
import contextlib
import errno
import gzip
import io
import json
import lzma
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, TypeVar

from nmt.system import platform as system
from nmt.system.errors import UserError

Result = TypeVar("Result")

#: Standard input or output, given instead of a file.
STANDARD = Path("-")
#: The endings of compressed text files.
PACKED = (".gz", ".xz", ".bz2")


class ClosedStream(io.TextIOWrapper):
    """Replacement for a standard stream that the caller has closed (`>&-`); discards all output."""

    def __init__(self) -> None:
        super().__init__(open(os.devnull, "wb"), encoding="utf-8")  # noqa: SIM115  closed with this stream


class OutlivingStream:
    """A stream that survives the end of its terminal or pipe: further output is discarded without an error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or discard the text if the reader has gone."""
        with self._gone():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing if the reader has gone."""
        with self._gone():
            self._stream.flush()

    @contextlib.contextmanager
    def _gone(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not isinstance(error, BrokenPipeError) and error.errno not in (errno.EIO, errno.ENXIO):
                raise
            drop(self._stream)


def drop(stream: TextIO) -> None:
    """Discard the buffered and all further output of a stream, so that the last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


_RANDOM = "[a-z0-9_]{8}"  # the random part that tempfile adds to a name
_OF_SAFETENSORS = "tmp[A-Za-z0-9]{6}"


def full(error: OSError) -> bool:
    """Whether a disk or the user's quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def unwritable(path: Path | str, error: OSError, setting: str = "") -> UserError:
    """The error for a file or folder that cannot be written, with a cure; `setting` is the setting that chooses it."""
    cure = "Free some space, or choose another folder" if full(error) else "Choose a folder that can be written"
    return UserError(f"Cannot write {path}: {error.strerror or error}. {cure}{f': {setting}' if setting else ''}.")


@contextlib.contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; on success it becomes `path`, on failure it is removed.

    Raises:
        UserError: the folder cannot be written, the existing file is write-protected, or the disk is full.
    """
    temporary: Path | None = None
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(f"Cannot write {path}: it is write-protected. Choose another place, or unprotect it.")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
            temporary = Path(name)
            os.close(handle)
        except OSError as error:
            raise unwritable(path, error) from error
        yield temporary
        system.sync(temporary)
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else usual_mode(0o666))
        system.replace(temporary, path)
    except BrokenPipeError:  # from another output, not from this file
        raise
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder`; on success it becomes `folder`, on failure it is removed.

    Raises:
        OSError: the folder cannot be created, or `folder` exists already.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}.", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(usual_mode(0o777))
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def replacing_folder(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder next to `folder`; on success it becomes `folder`. Only one process at a time may do so.

    Entries of the earlier folder that match one of `names` (patterns with `*`) are deleted; other entries, which other
    programs or users have added, move to the new folder. If the process is killed, `folder` is the earlier or the new
    folder; if it is killed between two renames, the next call restores the earlier folder.

    Raises:
        UserError: a folder cannot be written.
    """
    before = folder.with_name(f".{folder.name}.before")
    try:
        remove_unfinished(folder)
        _settle(folder, before, names)
        try:
            with appearing(folder) as temporary:
                yield temporary
                if folder.exists():
                    folder.rename(before)
        finally:
            _settle(folder, before, names)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(folder, error) from error


def _settle(folder: Path, before: Path, names: Collection[str]) -> None:
    """Restore the earlier folder if `folder` is missing; else move its unknown entries to `folder`, and delete it."""
    if before.exists() and not folder.exists():
        before.rename(folder)
    elif before.exists():
        for path in before.iterdir():
            if not any(fnmatch(path.name, name) for name in names) and not (folder / path.name).exists():
                path.rename(folder / path.name)
        shutil.rmtree(before)


def read_whole(folder: Path, read: Callable[[], Result]) -> Result:
    """Call `read`, which reads files of a folder; call it again if `replacing_folder` replaces the folder meanwhile."""
    while True:
        before = _identity(folder)
        try:
            result = read()
        except (UserError, OSError):
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return result


def _identity(folder: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        state = folder.stat()
        return state.st_ino, state.st_ctime_ns
    return None


def is_regular(path: Path) -> bool:
    """Whether a path is a file that can be read twice, and not a pipe, a device or standard input."""
    return path != STANDARD and path.is_file() and not str(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))


@contextlib.contextmanager
def packing(file: BinaryIO, name: Path) -> Iterator[IO[bytes]]:
    """Yield a file that compresses into `file` by the ending of `name`; `file` itself if `name` has no such ending.

    Equal text gives equal bytes.
    """
    packers: dict[str, Callable[[], Any]] = {
        ".gz": partial(gzip.GzipFile, filename="", mode="wb", fileobj=file, mtime=0),
        ".xz": partial(lzma.open, file, "wb"),
        ".bz2": partial(bz2.open, file, "wb"),
    }
    with packers.get(name.suffix.lower(), partial(contextlib.nullcontext, file))() as packed:
        yield packed


@contextlib.contextmanager
def open_text(path: Path, name: Path, *, line_buffering: bool = False) -> Iterator[TextIO]:
    """Open a file to write UTF-8 with line feeds, compressed by the ending of `name`."""
    with path.open("wb") as file, packing(file, name) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n", line_buffering=line_buffering)
        try:
            yield text
            text.flush()
        finally:
            with contextlib.suppress(OSError):  # the flush has raised it already
                text.detach()


def usual_mode(mode: int) -> int:
    """The mode of a new file by the umask, since `tempfile` makes files private."""
    umask = os.umask(0)
    os.umask(umask)
    return mode & ~umask


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files in a folder, and temporary copies of the folder itself, that killed processes have left.

    No other process may write to the folder meanwhile.
    """
    for path in folder.glob(".*"):
        if re.fullmatch(rf"\.(?:.+\.(?:{_RANDOM}|keeping)|{_OF_SAFETENSORS})", path.name) and path.is_file():
            path.unlink(missing_ok=True)
    folder_pattern = re.compile(rf"\.{re.escape(folder.name)}\.{_RANDOM}")
    for path in folder.parent.glob(".*"):
        # A shortened name could belong to another folder.
        if len(folder.name) <= 40 and folder_pattern.fullmatch(path.name) and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 with line feeds, atomically (UserError if it cannot be written)."""
    with replace_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write the pieces of a text one after the other, like `write_text`."""
    with replace_atomically(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` atomically (UserError if it cannot be written)."""
    with replace_atomically(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, value: Any) -> None:
    """Write a value as by `json_text`, atomically (UserError if it cannot be written)."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Indented JSON; values of other types become text, and NaN and infinity become null."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False) + "\n"
    except ValueError:
        return json_text(_finite(json.loads(json.dumps(value, default=str))))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
