"""Checksums of a run's files, which reveal damage: `checksums.json` in the run's folder.

A name has the checksums of the file and of the one before it. The new one is written before the file is replaced, so a
process that is killed between the two leaves a whole run. Files without an entry are not checked.
"""

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from nmt.system import platform as system
from nmt.system.errors import UserError, damaged
from nmt.system.facts import TEXT, Fields, each, fault
from nmt.system.files import replace_atomically, write_json
from nmt.system.foreign import inside, read_json

NAME = "checksums.json"
_BLOCK = 1 << 20


def checksum(path: Path) -> str:
    """Size and CRC-32 of a file, which differs for any flipped bit (OSError if it cannot be read)."""
    size = value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            value = zlib.crc32(block, value)
    return f"{size}-{value:08x}"


def known(folder: Path) -> dict[str, list[str]]:
    """The checksums by name; none without checksums (UserError if they are damaged)."""
    path = inside(folder, NAME)
    try:
        data = read_json(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise damaged(path) from error
    if fault(data, Fields(further=each(TEXT))):
        raise damaged(path)
    return dict(data)


def add(folder: Path, names: Iterable[str]) -> None:
    """Add the checksums of files as they are (UserError if that fails)."""
    _write(folder, {**known(folder), **{name: [checksum(folder / name)] for name in names}})


@contextlib.contextmanager
def replacing(folder: Path, name: str) -> Iterator[Path]:
    """Yield a temporary path; on success it becomes the file `name` of the folder, with its checksum.

    Raises:
        UserError: see `nmt.system.files.replace_atomically`.
    """
    with replace_atomically(folder / name) as temporary:
        yield temporary
        # A damaged file of checksums must not end a training: what is written from now on has one.
        with contextlib.suppress(UserError):
            entries, new = known(folder), checksum(temporary)
            _write(folder, {**entries, name: [new, *(old for old in entries.get(name, [])[:1] if old != new)]})


def keep(folder: Path, name: str, copy: str) -> None:
    """Make the file `name` also known as `copy`, in place of an earlier one; without links on the disk, do nothing."""
    source, temporary = folder / name, folder / f".{copy}.keeping"
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.hardlink_to(source)
        with contextlib.suppress(UserError):
            entries = known(folder)
            if name in entries:
                _write(folder, {**entries, copy: [*entries[name], *entries.get(copy, [])][:3]})
        system.replace(temporary, folder / copy)


def damage(path: Path) -> str:
    """What is wrong with a file of a run, by the checksums of its folder or of the folder above; "" if nothing is.

    The folder above a run is not part of it.

    Raises:
        UserError: the checksums are damaged.
        OSError: the file cannot be read.
    """
    for folder in path.parents[:2]:
        expected = known(folder).get(path.relative_to(folder).as_posix())
        if expected is not None:
            return "" if checksum(path) in expected else "its checksum is not the one that it was written with"
        if (folder / "config.yaml").exists():
            break
    return ""


def check(path: Path) -> None:
    """Raise UserError if a file of a run is damaged by its checksum; a missing one is left to its reader."""
    with contextlib.suppress(FileNotFoundError):
        if reason := damage(path):
            raise damaged(path, reason)


def _write(folder: Path, entries: dict[str, list[str]]) -> None:
    write_json(folder / NAME, entries)
