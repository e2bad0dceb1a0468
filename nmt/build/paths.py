"""Input and output files of a command: checked before any work; outputs are written atomically."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from nmt.data.streams import missing_file, name_of
from nmt.system.errors import UserError
from nmt.system.files import PACKED, STANDARD, ClosedStream, full, is_regular, open_text, replace_atomically, unwritable
from nmt.system.platform import shell_command, shell_quoted

#: Endings of files that are neither plain text nor packed in a format of `PACKED`.
_OTHERS = (
    *(".zip", ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".zst", ".lz", ".lz4", ".lzma", ".z", ".7z", ".rar"),
    *(".doc", ".docx", ".xls", ".xlsx", ".odt", ".ods", ".pdf", ".rtf"),
)


def check_paths(
    inputs: Mapping[str, Path | None],
    outputs: Mapping[str, Path | None],
    folders: Collection[str] = (),
    text: bool = True,
) -> None:
    """Check before any work that all inputs exist and all outputs can be written.

    Args:
        inputs: key -> input file, or None.
        outputs: key -> output file or folder, or None.
        folders: keys of outputs that are folders.
        text: whether the output files are text.

    Raises:
        UserError: an input does not exist, or an output cannot be written.
    """
    files = {key: path for key, path in inputs.items() if path is not None}
    once: dict[Path, str] = {}
    for key, path in files.items():
        if not is_regular(path):
            same = once.setdefault(Path("/dev/stdin") if path == STANDARD else path, key)
            if same != key:
                raise UserError(f"{same} and {key} are both {name_of(path)}, which can be read only once. Give a file.")
        if path != STANDARD and not path.exists():
            raise missing_file(path)
        if path.is_dir():
            raise UserError(f"{key}={path} is a folder. Name a file.")
    seen: dict[Path, str] = {}
    for key, place in outputs.items():
        if place is None:
            continue
        if place == STANDARD:
            same = seen.setdefault(place, key)
            if same != key:
                raise UserError(f"{same} and {key} would both go to standard output. Give a file for one of them.")
            if key in folders:
                raise UserError(f"{key}=-: this is a folder, which cannot be standard output. Name a folder.")
            continue
        for name, path in files.items():
            if place.exists() and place.samefile(path) and not place.is_char_device():
                which = "the input" if len(files) == 1 else f"the input {name}="
                raise UserError(f"{key}={place} is {which}. Write somewhere else.")
        same = seen.setdefault(place.resolve(), key)
        if same != key:
            raise UserError(f"{key} and {same} are both {place}. Give two different paths.")
        if text and place.suffix.lower() in _OTHERS and key not in folders:
            cure = f"Name a file with another ending; {PACKED[0]} packs it."
            raise UserError(f"{key}={place}: the output is text. {cure}")
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
    """Whether a folder can be written, or created if it does not exist."""
    parent = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=parent):
            return True
    except OSError as error:
        return full(error)  # a full disk is reported when the output is written


def check_replaceable(folder: Path, cure: str) -> None:
    """Check that a folder of results can be created, or that all its files can be replaced.

    Raises:
        UserError: a file or folder cannot be written; the message ends with `cure`.
    """
    if folder.is_file():
        raise UserError(f"{folder} is a file where a folder would be made. {cure}")
    for path in (folder.parent, folder, *sorted(folder.rglob("*"))):
        if not (os.access(path, os.W_OK) if path.is_file() else is_writable(path)):
            raise UserError(f"{path} is write-protected. {cure}")


def check_standard_output(what: str) -> None:
    """Raise UserError if standard output, to which `what` would be written, is closed."""
    if isinstance(sys.stdout, ClosedStream):
        raise UserError(f"Standard output is closed, so the {what} would be lost. Give output=FILE.")


def unprotect(folder: Path) -> str:
    """Advice for a write-protected run, as the end of a message."""
    return f"give yourself permission (chmod -R u+w {shell_quoted(str(folder))}), or take a copy of the run."


def pipes_of(data: Mapping[str, Any]) -> str:
    """The settings of a data set that name pipes or standard input, as words of a command line; "" without any."""
    words = []
    for key in ("files", "train", "valid", "test", "train_links"):
        value = data.get(key) or []
        for name in [value] if isinstance(value, str) else value:
            path = Path(str(name)).expanduser()
            ended = [path.with_name(f"{path.name}.{data.get(side)}") for side in ("source", "target") if path.name]
            pipes = (each for each in [path, *ended] if each.exists() and not each.is_dir() and not is_regular(each))
            if path == STANDARD or str(path).startswith("/dev/fd/") or any(pipes):
                words.append(f"data.{key}={name}")
    return " ".join(words)


def is_replaceable(path: Path) -> bool:
    """Whether an output can be replaced by a temporary file, unlike a device or a named pipe."""
    return is_regular(path) or not (path == STANDARD or path.exists())


def writer(stack: contextlib.ExitStack, path: Path | None) -> Callable[[str], None]:
    """A function that writes lines to a file, atomically, or to standard output (UserError if that is closed).

    The ending of a file determines how it is packed.
    """
    file: TextIO
    if path is None or path == STANDARD:
        check_standard_output("output")
        if isinstance(sys.stdout, TextIO) or hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        file = sys.stdout
    elif not is_replaceable(path):
        stack.enter_context(writing(path))
        file = stack.enter_context(open_text(path, path, line_buffering=True))  # its reader needs each line at once
    else:
        temporary = stack.enter_context(replace_atomically(path.resolve()))
        file = stack.enter_context(open_text(temporary, path))

    def write(line: str) -> None:
        with writing(path):
            print(line, file=file)

    return write


@contextlib.contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Turn errors of writing a file, or standard output (None), into UserError; the command handles a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if path is not None and is_replaceable(path):
            raise unwritable(path, error) from error
        cure = "Free some space, or write into another file" if full(error) else "Write into another file"
        raise UserError(f"Cannot write {path or 'standard output'}: {error.strerror or error}. {cure}.") from error
