"""Checksums of a run's files, which reveal damage: `checksums.json` in the run's folder.

An entry has the checksums of the current file and of its predecessor. The new checksum is written before the file is
replaced, so a process that is killed in between leaves an intact run. Files without an entry are not checked.
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
    """Size and CRC-32 of a file, which detects any single flipped bit (OSError if the file cannot be read)."""
    size = value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            value = zlib.crc32(block, value)
    return f"{size}-{value:08x}"


def known(folder: Path) -> dict[str, list[str]]:
    """The checksums by file name; empty without a file of checksums (UserError if it is damaged)."""
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
    """Add the checksums of existing files (UserError if they cannot be written)."""
    _write(folder, {**known(folder), **{name: [checksum(folder / name)] for name in names}})


@contextlib.contextmanager
def replacing(folder: Path, name: str) -> Iterator[Path]:
    """Yield a temporary path; on success it becomes the file `name` of the folder, with its checksum.

    Raises:
        UserError: see `nmt.system.files.replace_atomically`.
    """
    with replace_atomically(folder / name) as temporary:
        yield temporary
        # A damaged file of checksums must not end a training: the file is then written without a checksum.
        with contextlib.suppress(UserError):
            entries, new = known(folder), checksum(temporary)
            _write(folder, {**entries, name: [new, *(old for old in entries.get(name, [])[:1] if old != new)]})


def keep(folder: Path, name: str, copy: str) -> None:
    """Hard-link the file `name` as `copy`, replacing an earlier `copy`; do nothing if the disk has no hard links."""
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
    """The damage of a run's file by the checksums of its folder or the parent folder; "" if the checksum matches.

    The parent folder is used only for subfolders of a run. Without a checksum, the file counts as undamaged.

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
    """Raise UserError if a run's file does not match its checksum; a missing file is ignored here."""
    with contextlib.suppress(FileNotFoundError):
        if reason := damage(path):
            raise damaged(path, reason)


def _write(folder: Path, entries: dict[str, list[str]]) -> None:
    write_json(folder / NAME, entries)
