"""Output files of a long command, which survive an interruption.

Lines are written to FILE.part next to FILE. At the end, FILE.part becomes FILE, compressed if FILE ends in .gz, .xz or
.bz2. A killed command leaves FILE.part, and `resume=true` continues after its last complete line. FILE.part of a
document is a journal of its sentences, and is deleted when the document is written.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal, TextIO

from nmt.system import platform as system
from nmt.system.errors import UserError
from nmt.system.files import PACKED, packing, replace_atomically, unwritable, usual_mode
from nmt.system.terminal import print_message

#: false: fail if partial files exist. auto: continue partial files if they exist. true: fail if none exist.
Resume = Literal["false", "auto", "true"]


class PartialFiles:
    """The partial files of a command, each with one line per line of the input.

    Attributes:
        lines: the number of lines that all partial files already have.
    """

    def __init__(self, outputs: Mapping[str, Path], resume: Resume, unit: str = "lines") -> None:
        """Open the partial files of `outputs`, which has the key "output"; messages call a line a `unit`.

        Raises:
            UserError: there is nothing to resume, or a partial file must not be overwritten.
            OSError: a file cannot be written.
        """
        self._unit = unit
        self._outputs = {key: path.resolve() for key, path in outputs.items()}
        self._parts = {key: path.with_name(f"{path.name}.part") for key, path in self._outputs.items()}
        self.lines = self._resumed_lines(resume)
        self._files = {key: _opened(part, self.lines) for key, part in self._parts.items()}

    def _resumed_lines(self, resume: Resume) -> int:
        begun = [part for part in self._parts.values() if part.exists()]
        leftovers = [part for part in begun if part.stat().st_size]
        lines = min(map(_whole_lines, begun), default=0)
        if leftovers and resume == "false":
            raise UserError(
                f"An interrupted translation has left {lines:,} {self._unit} for {self._outputs['output']}. To "
                f"continue it, add resume=true. To start again, delete them: {system.shell_command('rm', *leftovers)}"
            )
        if leftovers and len(begun) < len(self._parts):
            raise UserError(f"{leftovers[0]} was begun with other outputs. Give the same ones with resume={resume}.")
        if resume == "true" and not leftovers:
            raise UserError(
                f"There is nothing to resume: no interrupted translation has left {self._parts['output']}. Leave out "
                "resume=true, or give resume=auto."
            )
        return lines

    def writer(self, key: str) -> Callable[[str], None]:
        """Return a function that appends a line to the file of `key`."""
        return lambda line: print(line, file=self._files[key])

    def lines_in(self, key: str) -> Iterator[str]:
        """Yield the lines that the file of `key` already has."""
        with self._parts[key].open(encoding="utf-8", newline="\n") as file:
            yield from islice(file, self.lines)

    def flush(self) -> None:
        """Flush all files, so that no line is lost if the command is killed."""
        for file in self._files.values():
            file.flush()

    def publish(self) -> None:
        """Replace the outputs by the partial files, "output" last."""
        for file in self._files.values():
            file.close()
        for key in sorted(self._parts, key="output".__eq__):
            output, part = self._outputs[key], self._parts[key]
            if output.suffix.lower() in PACKED:
                with (
                    replace_atomically(output) as temporary,
                    part.open("rb") as text,
                    temporary.open("wb") as whole,
                    packing(whole, output) as packed,
                ):
                    shutil.copyfileobj(text, packed)
                part.unlink()
            else:
                system.sync(part)
                part.chmod(output.stat().st_mode & 0o7777 if output.exists() else usual_mode(0o666))
                system.replace(part, output)

    def delete(self) -> None:
        """Close and delete the partial files; the output has their content in another form."""
        for key, file in self._files.items():
            file.close()
            self._parts[key].unlink()
        self._files, self._parts = {}, {}

    def keep(self) -> None:
        """Close the files and print how to continue; delete the files if a file has no complete line."""
        for file in self._files.values():
            with contextlib.suppress(OSError):  # a full disk: already reported
                file.close()
        parts = [part for part in self._parts.values() if part.exists()]
        lines = min(map(_whole_lines, parts), default=0)
        if lines > self.lines:
            print_message(
                f"{lines:,} {self._unit} are translated and kept in {self._parts['output']}. To continue, run the "
                "same command with resume=true."
            )
        for part in parts if not lines else ():
            part.unlink()


@contextlib.contextmanager
def partial_files(outputs: Mapping[str, Path], resume: Resume, unit: str = "lines") -> Iterator[PartialFiles]:
    """Open partial files, which replace the outputs if the context ends without an error.

    Raises:
        UserError: an output cannot be written; see also `PartialFiles`.
    """
    try:
        files = PartialFiles(outputs, resume, unit)
        try:
            yield files
            files.publish()
        except BaseException:
            files.keep()
            raise
    except BrokenPipeError:  # of another output
        raise
    except OSError as error:
        raise unwritable(outputs["output"], error) from error


def _whole_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


def _opened(path: Path, lines: int) -> TextIO:
    """Open a file for writing after its first `lines` lines; the rest is cut off."""
    with path.open("a+b") as file:
        file.seek(0)
        for _ in range(lines):
            file.readline()
        file.truncate(file.tell())
    return path.open("a", encoding="utf-8", newline="\n")
