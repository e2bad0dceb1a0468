"""Where a verb reads and writes: checked before any work, and written whole or not at all."""

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from nmt.data.lines import missing_file
from nmt.errors import UserError
from nmt.files import replace_atomically


def check_paths(inputs: Mapping[str, Path], outputs: Mapping[str, Path], folders: Collection[str] = ()) -> None:
    """Finds out before any work whether the inputs are there and the outputs can be written.

    Args:
        inputs: files that are read, by key.
        outputs: places that are written, by key.
        folders: keys of outputs that are folders.

    Raises:
        UserError: one of them cannot be.
    """
    for key, path in inputs.items():
        if not path.exists():
            raise missing_file(path)
        if path.is_dir():
            raise UserError(f"{key}={path} is a folder. Name a file.")
    seen: dict[Path, str] = {}
    for key, path in outputs.items():
        place = path.resolve()
        for name, read in inputs.items():
            if path.exists() and path.samefile(read) and not path.is_char_device():
                which = "the input" if len(inputs) == 1 else f"the input {name}="
                raise UserError(f"{key}={path} is {which}. Write somewhere else.")
        if place in seen:
            raise UserError(f"{key} and {seen[place]} both name {path}. Write to two places.")
        seen[place] = key
        if path.exists() and not os.access(path, os.W_OK):
            raise UserError(f"{key}={path} is write-protected. Write somewhere else.")
        if key in folders:
            if path.exists() and not path.is_dir():
                raise UserError(f"{key}={path} is a file. Name a folder.")
        elif path.is_dir():
            raise UserError(f"{key}={path} is a folder. Name a file.")
        elif not path.parent.is_dir():
            raise UserError(f"{key}={path}: there is no folder {path.parent}. Make it, or write elsewhere.")
        elif not path.exists() and not os.access(path.parent, os.W_OK):
            raise UserError(f"{key}={path}: nothing can be written into {path.parent}. Write elsewhere.")


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
