"""Safe reading of untrusted files: paths that cannot leave their folder, and JSON and YAML with limits.

Every path that depends on the content of a run must pass through `inside`.
"""

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

import yaml  # type: ignore[import-untyped]

from nmt.system.errors import UserError, damaged
from nmt.system.facts import Fields, Kind, fault
from nmt.system.platform import name_problem

#: Maximum size in bytes of a configuration and of a JSON file; typical sizes are 5 kB and 1 MB.
MOST_YAML, MOST_JSON = 1 << 18, 1 << 28
#: Maximum number of digits of a whole number; 64-bit numbers have up to 20.
MOST_DIGITS = 20
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def inside(folder: Path, *names: str) -> Path:
    """The path of `names` in a folder. A name may have several parts with slashes; the path need not exist.

    The folder itself may be a link, since the user has chosen it. Its content must have no links.

    Raises:
        UserError: the path leaves the folder, or a link or a special file is on it.
    """
    path = folder
    for part in (part for name in names for part in name.split("/")):
        if name_problem(part):
            raise UserError(f"{folder}: the name {'/'.join(names)!r} leaves this folder. Do not use this run.")
        path = path / part
        _check(path)
    return path


def check_contents(folder: Path) -> None:
    """Check that a folder contains only folders and regular files, at any depth.

    Raises:
        UserError: it contains a link or a special file, or a folder cannot be read.
    """
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        _check(Path(entry.path))
        except FileNotFoundError:  # a temporary folder, removed meanwhile
            continue
        except OSError as error:
            raise UserError(f"{error.filename or folder} cannot be read: {error.strerror or error}.") from error


def _check(path: Path) -> None:
    """Raise UserError if the path is a link or a special file."""
    try:
        mode = path.lstat().st_mode
    except OSError:  # missing or unreadable: opening the file will report this
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
        raise UserError(
            f"{path} is {kind}, which a run never has. Do not use this run; if you have made it yourself, replace it "
            f"by a file or a folder."
        )


def _read_text(path: Path, most: int) -> str:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise damaged(path, f"it has more than {most:,} bytes")
    return data.decode("utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file (OSError if it cannot be read, UserError if it is damaged)."""
    return parse_json(path, read_text_of(path))


def read_text_of(path: Path) -> str:
    """Read a text of at most MOST_JSON bytes (OSError if it cannot be read, UserError if it is damaged or larger)."""
    try:
        return _read_text(path, MOST_JSON)
    except ValueError as error:
        raise damaged(path) from error


def parse_json(path: Path, text: str) -> Any:
    """Parse the JSON text of a file (UserError for invalid JSON, numbers that are not finite, and lone surrogates)."""
    try:
        content = json.loads(text, parse_constant=_refuse, parse_int=_whole, parse_float=_finite)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except _NoNumberError as error:
        raise damaged(path, f"it has {error}, which no figure is") from error
    except (ValueError, RecursionError) as error:  # RecursionError: thousands of brackets
        raise damaged(path) from error
    return content


class _NoNumberError(ValueError):
    """JSON has a number that is not finite, or has too many digits."""


def _refuse(text: str) -> NoReturn:
    raise _NoNumberError(text if len(text) <= MOST_DIGITS else f"a number of {len(text)} characters")


def _whole(text: str) -> int:
    return int(text) if len(text) <= MOST_DIGITS else _refuse(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def check_rows(path: Path, rows: Any, kind: Kind | Fields) -> list[dict[str, Any]]:
    """Check and return the rows of a file (UserError if the content is no list, or a row is not of this kind)."""
    if not isinstance(rows, list):
        raise damaged(path, "it has no list")
    for number, row in enumerate(rows, 1):
        if wrong := fault(row, kind):
            raise damaged(path, f"row {number}: {wrong}")
    return rows


def read_saved_yaml(path: Path) -> str:
    """Read a saved configuration; it must have no aliases, by which a few lines can expand to any amount of memory.

    Raises:
        OSError: the file cannot be read.
        UserError: the file is too large.
        ValueError, YAMLError: the file is not UTF-8 or YAML, or has aliases.
    """
    text = _read_text(path, MOST_YAML)
    if ("*" in text or "&" in text) and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
        raise ValueError("it has aliases (*NAME), which saved runs never have")
    return text
