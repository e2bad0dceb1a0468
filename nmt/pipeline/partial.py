"""Output files of a long command, which keep what is written when the command is interrupted.

    FILE.part         the output so far; it becomes FILE at the end, and is packed then if FILE ends in .gz, .xz or .bz2
    FILE.part.json    how far it is, and which settings made it

Both are beside FILE. A command that is killed leaves them, and `resume=true` goes on from there.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from nmt.errors import UserError
from nmt.files import PACKED, packing, replace_atomically, unwritable, usual_mode, write_json
from nmt.locks import OUTPUT, locked
from nmt.terminal import print_message

#: Whether to go on from partial files: no, if there are any, or only if there are any.
Resume = Literal["false", "auto", "true"]


class Saved(NamedTuple):
    """How far the outputs are.

    Attributes:
        lines: of the input, whose results are written.
        digest: of these lines.
        sizes: of the partial files in bytes, by their key.
        settings: that made them.
        random_state: of the search; {} if it draws nothing.
    """

    lines: int = 0
    digest: str = ""
    sizes: Mapping[str, int] = {}
    settings: Mapping[str, Any] = {}
    random_state: Mapping[str, str] = {}


class LinesDigest:
    """A digest of lines, taken in any portions."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *columns: Sequence[str]) -> None:
        """Add the next lines of each column."""
        for row in zip(*filter(None, columns), strict=True):
            self._hash.update("".join(f"{text}\n" for text in row).encode())

    def __str__(self) -> str:
        return self._hash.hexdigest()


class PartialFiles:
    """The partial files of a command. Writers are opened by key; `save` notes how far all of them are."""

    def __init__(self, outputs: Mapping[str, Path], resume: Resume) -> None:
        """`outputs` are files by key, among them "output", from which the journal has its name.

        Raises:
            UserError: there is nothing to resume, or something that is not to be overwritten.
        """
        self._outputs = {key: path.resolve() for key, path in outputs.items()}
        self._parts = {key: _sibling(path, ".part") for key, path in self._outputs.items()}
        self._journal = _sibling(self._outputs["output"], ".part.json")
        self._files: dict[str, TextIO] = {}
        self._published = False
        self.saved = self._earlier(resume)
        if not self.saved.lines:
            write_json(self._journal, {"lines": 0})

    def _earlier(self, resume: Resume) -> Saved:
        """What an interrupted command has left (UserError if that and `resume` do not fit)."""
        output, part = self._outputs["output"], self._parts["output"]
        saved = self._read_journal()
        if saved is None:
            foreign = [path for path in self._parts.values() if path.exists()]
            if foreign:
                raise UserError(
                    f"{foreign[0]} is in the way: it is not from an interrupted translation. Move it away, or give "
                    "another output=."
                )
        if saved is None or not saved.lines or not part.exists():
            if resume == "true":
                raise UserError(
                    f"There is nothing to resume: no interrupted translation has left {part}. Leave out resume=true, "
                    "or give resume=auto."
                )
            return Saved()
        if resume == "false":
            files = " ".join(shlex.quote(str(path)) for path in (*self._parts.values(), self._journal) if path.exists())
            raise UserError(
                f"An interrupted translation has left {saved.lines:,} lines for {output}. To continue it, add "
                f"resume=true. To start again, delete them: rm {files}"
            )
        if saved.sizes.keys() != self._parts.keys():
            missing = " and ".join(f"{key}=" for key in saved.sizes.keys() ^ self._parts.keys())
            raise UserError(f"{part} was begun with other outputs ({missing}). Give the same ones with resume=true.")
        for key, size in saved.sizes.items():
            path = self._parts[key]
            if not path.exists() or path.stat().st_size < size:
                raise UserError(f"{path} is damaged. Delete {self._journal} and {part}, and start again.")
        return saved

    def _read_journal(self) -> Saved | None:
        if not self._journal.exists():
            return None
        try:
            saved = Saved(**json.loads(self._journal.read_text(encoding="utf-8")))
            whole = isinstance(saved.lines, int) and all(isinstance(size, int) for size in saved.sizes.values())
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise UserError(f"{self._journal} is damaged. Delete it with {self._parts['output']}.") from error
        if not whole:
            raise UserError(f"{self._journal} is damaged. Delete it with {self._parts['output']}.")
        return saved

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """UserError if other settings made what is there."""
        now = _as_json(settings)
        different = [key for key in {**self.saved.settings, **now} if self.saved.settings.get(key) != now.get(key)]
        if different:
            changes = ", ".join(f"{key}: {self.saved.settings.get(key)} -> {now.get(key)}" for key in different)
            raise UserError(
                f"{self._parts['output']} was begun with other settings ({changes}). Give the same with resume=true."
            )

    def writer(self, key: str) -> Callable[[str], None]:
        """A function that writes lines to a partial file, after what is saved."""
        if not self.saved.lines:
            self._open(key)

        def write(line: str) -> None:
            (self._files.get(key) or self._open(key)).write(line + "\n")

        return write

    def _open(self, key: str) -> TextIO:
        """A partial file, cut to what is saved."""
        self._files[key] = file = self._parts[key].open("a", encoding="utf-8", newline="\n")
        file.truncate(self.saved.sizes.get(key, 0))
        return file

    def save(
        self, lines: int, digest: LinesDigest, settings: Mapping[str, Any], random_state: Mapping[str, str]
    ) -> None:
        """Note that the results of the first `lines` of the input are written; `Saved` names the rest."""
        sizes = dict(self.saved.sizes)
        for key, file in self._files.items():
            _write_out(file)
            sizes[key] = os.fstat(file.fileno()).st_size
        self.saved = Saved(lines, str(digest), sizes, _as_json(settings), random_state)
        write_json(self._journal, self.saved._asdict())

    def publish(self) -> None:
        """Replace the outputs by the partial files, the main one last."""
        for key in self._parts:
            file = self._files.get(key) or self._open(key)
            _write_out(file)
            file.close()
        for key in sorted(self._parts, key=lambda key: key == "output"):
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
                continue
            part.chmod(output.stat().st_mode & 0o7777 if output.exists() else usual_mode(0o666))
            part.replace(output)
        self._published = True
        self._journal.unlink()

    def close(self) -> None:
        """Close the files. If they are not published, say how to go on, or remove them if nothing is saved."""
        for file in self._files.values():
            with contextlib.suppress(OSError):  # of a full disk, which is said already
                file.close()
        if self._published:
            return
        if self.saved.lines and self._files:
            print_message(
                f"{self.saved.lines:,} lines are translated and kept in {self._parts['output']}. To continue, run the "
                "same command with resume=true.",
            )
        if self.saved.lines:
            return
        for path in (*(self._parts[key] for key in self._files), self._journal):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def partial_files(outputs: Mapping[str, Path], resume: Resume) -> Iterator[PartialFiles]:
    """Partial files that become the outputs at the end; one process at a time has those of an output.

    Raises:
        UserError: another process writes the output, it cannot be written, or see `PartialFiles`.
    """
    with locked(outputs["output"].resolve(), OUTPUT):
        files = PartialFiles(outputs, resume)
        try:
            yield files
            files.publish()
        except BrokenPipeError:  # of another output
            raise
        except OSError as error:
            raise unwritable(outputs["output"], error) from error
        finally:
            files.close()


def _write_out(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return tree
