"""From lines to translated lines: a file, or a pipe whose lines are answered as they come."""

import contextlib
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from omegaconf import DictConfig

from nmt.data.lines import iterate_lines, open_lines
from nmt.errors import UserError
from nmt.links import format_links
from nmt.pipeline.formats import Format
from nmt.pipeline.opening import has_weights, open_translator, where_to_look
from nmt.pipeline.paths import check_paths, standard_output, writer
from nmt.translation.types import Translation

CHUNK, CHARACTERS = 2000, 500_000  # the most lines, and about the most text, held at a time


def translate(config: DictConfig, overrides: Sequence[str]) -> int:
    """Translates `input` to `output`; nothing but translations goes to standard output."""
    inputs, outputs = (
        {key: Path(str(config[key])) for key in keys if config[key]}
        for keys in (("input", "prefix"), ("output", "alignments", "heatmaps"))
    )
    check_paths(inputs, outputs, folders=("heatmaps",))
    translator = open_translator(config, overrides)
    if ("alignments" in outputs or "heatmaps" in outputs) and not has_weights(translator):
        raise UserError(
            "alignments= and heatmaps= are made from attention weights, and a run with decoder=none has none. "
            "Leave them out, or take a run with attention."
        )
    head, shift = where_to_look(config, translator)
    nbest = getattr(translator.search, "nbest", 1)
    form = Format(str(config.format), nbest, bool(config.scores), bool(config.weights), head, shift)
    form.check(has_weights(translator))
    translator.keep_weights = form.name != "text" or "alignments" in outputs or "heatmaps" in outputs
    told = set[str]()
    with contextlib.ExitStack() as stack:
        write = writer(stack, outputs.get("output"))
        write_links = writer(stack, outputs["alignments"]) if "alignments" in outputs else None
        prefixes = _Prefixes(inputs.get("prefix"), stack)
        number = 0
        for lines in _chunks(config, stack):
            for translations in translator.translate_chunk(lines, number + 1, prefixes.take(len(lines))):
                number += 1
                for record in form.records(number, translations):
                    write(record)
                if write_links is not None:
                    write_links(_links(translations[0], head, shift))
                if "heatmaps" in outputs and translations[0].weights is not None:
                    picture = outputs["heatmaps"] / f"{number:05d}.png"
                    for note in _draw(translations[0], picture, head, shift):
                        if note not in told:
                            told.add(note)
                            print(f"warning: {note}", file=sys.stderr)
            if "output" not in outputs:
                with standard_output():
                    sys.stdout.flush()
        prefixes.check_end()
    return 0


class _Prefixes:
    """The lines of `prefix`, as many at a time as there are lines to translate; none where there is no such file."""

    def __init__(self, path: Path | None, stack: contextlib.ExitStack) -> None:
        self.path, self.count = path, 0
        self.lines = iter(()) if path is None else stack.enter_context(open_lines(path))

    def take(self, count: int) -> list[str]:
        """The next ones (UserError if there are fewer)."""
        prefixes = list(islice(self.lines, count))
        self.count += len(prefixes)
        if self.path is not None and len(prefixes) < count:
            raise UserError(
                f"prefix={self.path} has {self.count} lines, and the input has more. Give a line for each line of the "
                f"input, an empty one where the translation is free."
            )
        return prefixes

    def check_end(self) -> None:
        """Raises UserError if there are more of them than lines to translate."""
        if next(self.lines, None) is not None:
            raise UserError(f"prefix={self.path} has more lines than the input, which has {self.count}.")


def _chunks(config: DictConfig, stack: contextlib.ExitStack) -> Iterator[list[str]]:
    """Lists of lines: full ones from a file; from a pipe, whatever has come."""
    if config.input:
        lines = stack.enter_context(open_lines(Path(str(config.input))))
        yield from full(lines, CHUNK)
        return
    yield from arriving(iterate_lines(_standard_input(), "standard input"), CHUNK)


def _standard_input() -> BinaryIO:
    """Standard input through a reader of our own.

    The interpreter closes its own reader on the way out, and dies if a thread still waits in it for a line.
    """
    if sys.stdin is None:
        raise UserError("There is no standard input. Give input=FILE.")
    if sys.stdin.isatty():
        print("Reading sentences from the terminal, a line each; Ctrl-D ends.", file=sys.stderr)
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a file: somebody's stand-in
        return sys.stdin.buffer


def full(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Lists of `most` lines, or of fewer where they are long."""
    chunk: list[str] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += len(line)
        if len(chunk) == most or characters >= CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def arriving(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Lists of the lines that have come by the time the list is asked for: at least one, at most `most`."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=most)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:  # handed to whoever reads the queue
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        chunk: list[str] = []
        characters = 0
        item = waiting.get()
        while isinstance(item, str):
            chunk.append(item)
            characters += len(item)
            if len(chunk) == most or characters >= CHARACTERS:
                break
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                break
        if chunk:
            yield chunk
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item


def _links(translation: Translation, head: int | Literal["mean"], shift: int) -> str:
    from nmt.alignment.weights import links

    if translation.weights is None:  # an empty line
        return ""
    return format_links(links(translation, head=head, shift=shift))


def _draw(translation: Translation, path: Path, head: int | Literal["mean"], shift: int) -> list[str]:
    from nmt.drawing.heatmap import draw

    return draw(translation, path, head=head, shift=shift)
