"""Inputs and outputs of a command: checked before any work, and written atomically."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from nmt.data.lines import missing_file
from nmt.errors import UserError
from nmt.files import ClosedStream, full, replace_atomically, unwritable
from nmt.system import shell_command, shell_quoted


def check_paths(
    inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None], folders: Collection[str] = ()
) -> None:
    """Check before any work that the inputs are there and the outputs can be written.

    Args:
        inputs: input files by key; None for a key without a file.
        outputs: output paths by key.
        folders: keys of outputs that are folders.

    Raises:
        UserError: an input does not exist, or an output cannot be written.
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
            raise UserError(f"{key} and {same} are both {place}. Give two different paths.")
        _check_writable(key, place, folder=key in folders)


def _check_writable(key: str, place: Path, *, folder: bool) -> None:
    if place.exists() and not os.access(place, os.W_OK):
        raise UserError(f"{key}={place} is write-protected. Write somewhere else.")
    if place.exists() and folder != place.is_dir():
        raise UserError(f"{key}={place} is a {'file. Name a folder' if folder else 'folder. Name a file'}.")
    if not folder and not place.parent.is_dir():
        fix = shell_command("mkdir -p", place.parent)
        raise UserError(f"{key}={place}: the folder {place.parent} does not exist. Create it: {fix}")
    if not place.exists():
        parent = next(parent for parent in place.absolute().parents if parent.exists())
        if not is_writable(parent):
            raise UserError(f"{key}={place}: the folder {parent} is not writable. Choose another path.")


def is_writable(folder: Path) -> bool:
    """Whether a folder can be written, or made if it is not there."""
    parent = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=parent):
            return True
    except OSError as error:
        return full(error)  # which is found where it matters, by whoever writes


def check_replaceable(folder: Path, cure: str) -> None:
    """Check that a folder can be made, or that all its files can be replaced.

    Args:
        folder: of results, with those of an earlier command if it exists.
        cure: ends the message, such as "Choose another folder: output=FOLDER."

    Raises:
        UserError: a file or folder cannot be written.
    """
    if folder.is_file():
        raise UserError(f"{folder} is a file where a folder would be made. {cure}")
    for path in (folder.parent, folder, *sorted(folder.rglob("*"))):
        if not (os.access(path, os.W_OK) if path.is_file() else is_writable(path)):
            raise UserError(f"{path} is write-protected. {cure}")


def check_standard_output(what: str) -> None:
    """UserError if the caller has closed standard output, to which `what` would go."""
    if isinstance(sys.stdout, ClosedStream):
        raise UserError(f"Standard output is closed, so the {what} would be lost. Give output=FILE.")


def unprotect(folder: Path) -> str:
    """The cure for a write-protected run."""
    return f"give yourself permission (chmod -R u+w {shell_quoted(str(folder))}), or take a copy of the run."


def is_replaceable(path: Path) -> bool:
    """Whether an output can be written elsewhere first: a device or a named pipe cannot be replaced."""
    special = str(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))
    return not special and (path.is_file() or not path.exists())


def writer(stack: contextlib.ExitStack, path: Path | None) -> Callable[[str], None]:
    """A function that writes lines to a file, atomically, or to standard output (UserError if that is closed)."""
    file: TextIO
    if path is None:
        check_standard_output("output")
        if isinstance(sys.stdout, TextIO) or hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        file = sys.stdout
    elif not is_replaceable(path):
        file = stack.enter_context(_device(path))
    else:
        temporary = stack.enter_context(replace_atomically(path.resolve()))
        file = stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))

    def write(line: str) -> None:
        with writing(path):
            print(line, file=file)

    return write


@contextlib.contextmanager
def _device(path: Path) -> Iterator[TextIO]:
    """A device or a named pipe, whose reader needs each line at once."""
    with writing(path):
        file = path.open("w", encoding="utf-8", newline="\n", buffering=1)
    try:
        yield file
    finally:
        with writing(path):
            file.close()


@contextlib.contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """UserError if a file, or standard output (None), cannot be written; a closed pipe is left to the command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if path is not None and is_replaceable(path):
            raise unwritable(path, error) from error
        cure = "Free some space, or write into another file" if full(error) else "Write into another file"
        raise UserError(f"Cannot write {path or 'standard output'}: {error.strerror or error}. {cure}.") from error
