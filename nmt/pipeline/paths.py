"""Where a verb reads and writes: checked before any work, and written whole or not at all."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from nmt.data.lines import missing_file
from nmt.errors import UserError
from nmt.files import replace_atomically


def check_paths(
    inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None], folders: Collection[str] = ()
) -> None:
    """Check before any work that the inputs are there and the outputs can be written.

    Args:
        inputs: files that are read, by key; None for a key that names no file.
        outputs: places that are written, by key.
        folders: keys of outputs that are folders.

    Raises:
        UserError: one of them cannot be.
    """
    files = {key: path for key, path in inputs.items() if path is not None}
    for key, path in files.items():
        if not path.exists():
            raise missing_file(path)
        if path.is_dir():
            raise UserError(f"{key}={path} is a folder. Name a file.")
    seen: dict[Path, str] = {}
    for key, place in outputs.items():
        if place is None:
            continue
        for name, path in files.items():
            if place.exists() and place.samefile(path) and not place.is_char_device():
                which = "the input" if len(files) == 1 else f"the input {name}="
                raise UserError(f"{key}={place} is {which}. Write somewhere else.")
        same = seen.setdefault(place.resolve(), key)
        if same != key:
            raise UserError(f"{key} and {same} both name {place}. Write to two places.")
        _check_writable(key, place, folder=key in folders)


def _check_writable(key: str, place: Path, *, folder: bool) -> None:
    if place.exists() and not os.access(place, os.W_OK):
        raise UserError(f"{key}={place} is write-protected. Write somewhere else.")
    if place.exists() and folder != place.is_dir():
        raise UserError(f"{key}={place} is a {'file. Name a folder' if folder else 'folder. Name a file'}.")
    if not folder and not place.parent.is_dir():
        raise UserError(f"{key}={place}: there is no folder {place.parent}. Make it, or write elsewhere.")
    if not place.exists():
        parent = next(parent for parent in place.absolute().parents if parent.exists())
        try:
            with tempfile.TemporaryDirectory(dir=parent):
                pass
        except OSError as error:
            raise UserError(f"{key}={place}: nothing can be written into {parent}. Write elsewhere.") from error


def writer(stack: contextlib.ExitStack, path: Path | None) -> Callable[[str], None]:
    """A function that writes lines to a file, whole or not at all, or to standard output."""
    file: TextIO
    if path is None:
        if isinstance(sys.stdout, TextIO) or hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        file = sys.stdout
    elif (path.exists() and not path.is_file()) or str(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        # A device or a named pipe cannot be replaced; whoever reads it wants each line at once.
        file = stack.enter_context(path.open("w", encoding="utf-8", newline="\n", buffering=1))
    else:
        temporary = stack.enter_context(replace_atomically(path.resolve()))
        file = stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))

    def write(line: str) -> None:
        with standard_output() if file is sys.stdout else contextlib.nullcontext():
            print(line, file=file)

    return write


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """UserError where standard output cannot be written; a reader that has gone is the program's affair."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"Cannot write standard output: {error.strerror}.") from error
