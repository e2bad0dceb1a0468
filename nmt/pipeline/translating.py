"""From lines to translated lines: a file, or a pipe whose lines are translated as they arrive."""

import contextlib
import functools
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from nmt.alignment.weights import Head
from nmt.data.documents import Followed, Follower
from nmt.data.lines import Decoder, Invalid, iterate_lines, open_lines
from nmt.errors import UserError
from nmt.heads import AUTO, MEAN, described, names_all
from nmt.links import format_links
from nmt.pipeline.formats import Format
from nmt.pipeline.opening import TranslatorRequest, default_head, has_weights, head_of
from nmt.pipeline.paths import check_paths, check_standard_output, standard_output, writer
from nmt.pipeline.viewing import pictured_head, view_of
from nmt.translation.stepping import heads_of
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, View

CHUNK, CHARACTERS = 2000, 500_000  # maximum number of lines, and about of characters, in memory
#: Writes the n-best list of a line, numbered from 1.
Write = Callable[[int, Sequence[Translation]], None]


@dataclass(frozen=True)
class Translating:
    """What `nmt.translate` is asked to do; `configs/translate.yaml` explains the settings."""

    translator: TranslatorRequest
    input: Path | None
    output: Path | None
    format: Literal["text", "tsv", "jsonl"]
    scores: bool
    weights: bool
    prefix: Path | None
    alignments: Path | None
    heatmaps: Path | None
    view: View
    head: str
    shift: Literal[0, 1]
    documents: Followed
    invalid: Invalid

    def __post_init__(self) -> None:
        if self.view != "cross" and self.heatmaps is None:
            raise UserError(f"view={self.view} is for heatmaps. Give heatmaps=FOLDER as well.")
        if self.weights and self.format != "jsonl":
            raise UserError("weights=true needs format=jsonl.")

    @property
    def draws_weights(self) -> bool:
        """Whether any output needs the weights of the attention to the source."""
        return self.alignments is not None or (self.heatmaps is not None and self.view == "cross")


def translate(request: Translating) -> int:
    """Translate `input` to `output`; nothing but translations goes to standard output."""
    outputs = {key: getattr(request, key) for key in ("output", "alignments", "heatmaps")}
    check_paths({"input": request.input, "prefix": request.prefix}, outputs, folders=("heatmaps",))
    if request.output is None:
        check_standard_output("translations")
    translator = request.translator.open(keep_weights=request.draws_weights or request.format != "text")
    if request.draws_weights and not has_weights(translator):
        raise UserError(
            "alignments= and heatmaps= need attention, but this run has none (decoder=none). Leave them out, or use a "
            "run with attention."
        )
    if request.weights and not has_weights(translator):
        raise UserError("weights=true needs attention, but this run has none (decoder=none). Leave it out.")
    pictured = pictured_head(request.view, request.head, translator) if request.heatmaps is not None else AUTO
    head, nbest = _head(request, translator), translator.search.nbest
    if pictured == AUTO:
        pictured = head
    form = Format(request.format, nbest, request.scores, request.weights, head, request.shift)
    with contextlib.ExitStack() as stack:
        writers = [_records(stack, request.output, form)]
        if request.alignments is not None:
            writers.append(_links(stack, request.alignments, head, request.shift))
        if request.heatmaps is not None:
            view = functools.partial(view_of, translator, request.view)
            writers.append(_pictures(request.heatmaps, pictured, request.shift, view))
        prefixes = _Prefixes(request.prefix, stack)
        follower = Follower(translator.context_sentences, request.documents)
        number, decoder = 0, Decoder(request.invalid, _warn)
        for lines in _chunks(request.input, stack, decoder):
            given, contexts = prefixes.take(len(lines)), follower.take(lines)
            for translations in translator.translate_chunk(lines, number + 1, given, contexts):
                number += 1
                for write in writers:
                    write(number, translations)
            if request.output is None:
                with standard_output():
                    sys.stdout.flush()
        prefixes.check_end()
        decoder.close()
        note_documents(follower, number)
    return 0


def _warn(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr, flush=True)


def note_documents(follower: Follower, lines: int) -> None:
    """Say that lines were taken for one document, if a run with context met no empty line among them."""
    if follower.unseparated and lines > 1:
        print(
            f"No empty line among {lines:,} lines: all were translated as one document. If they are not, separate "
            "documents with empty lines, or give documents=none.",
            file=sys.stderr,
        )


def _head(request: Translating, translator: Translator) -> str:
    """The head of links and heatmaps; for head=auto with a note if the model has several layers."""
    of_pictures = request.heatmaps is not None and (request.view != "cross" or names_all(request.head))
    heads = heads_of(translator.models)
    head = AUTO if of_pictures else head_of(request.head, translator)
    if head != AUTO or len(heads) < 2:
        return head
    head = default_head(request.translator.runs, translator)
    links = request.alignments is not None or request.format != "text"
    if head != MEAN and (links or (request.draws_weights and not of_pictures)):
        print(
            f"head=auto: links and heatmaps use head={head}, the {described(head, heads).partition(' (')[0]}. To see "
            f"which head aligns best: python -m nmt.align run={request.translator.runs[0].folder}",
            file=sys.stderr,
        )
    return head


class _Prefixes:
    """The lines of the prefix file, one per line to translate; none without such a file."""

    def __init__(self, path: Path | None, stack: contextlib.ExitStack) -> None:
        self.path, self.count = path, 0
        self.lines = iter(()) if path is None else stack.enter_context(open_lines(path))

    def take(self, count: int) -> list[str]:
        """The next `count` prefixes (UserError if there are fewer)."""
        prefixes = list(islice(self.lines, count))
        self.count += len(prefixes)
        if self.path is not None and len(prefixes) < count:
            raise UserError(
                f"prefix={self.path} has {self.count} lines, but the input has more. Give one line per input line; "
                f"leave a line empty for no prefix."
            )
        return prefixes

    def check_end(self) -> None:
        """Raise UserError if there are more prefixes than lines to translate."""
        if next(self.lines, None) is not None:
            raise UserError(f"prefix={self.path} has more lines than the input, which has {self.count}.")


def _records(stack: contextlib.ExitStack, path: Path | None, form: Format) -> Write:
    """Write the records of each line."""
    write_line = writer(stack, path)

    def write(number: int, translations: Sequence[Translation]) -> None:
        for record in form.records(number, translations):
            write_line(record)

    return write


def _links(stack: contextlib.ExitStack, path: Path, head: Head, shift: int) -> Write:
    """Write the word links of each line."""
    from nmt.alignment.weights import links

    write_line = writer(stack, path)

    def write(number: int, translations: Sequence[Translation]) -> None:
        best = translations[0]  # without weights for an empty line
        write_line("" if best.weights is None else format_links(links(best, head=head, shift=shift)))

    return write


def _pictures(folder: Path, head: Head, shift: int, view: Callable[[Translation], Translation | None]) -> Write:
    """Write a heatmap of the view of each line that has one; print each warning once."""
    from nmt.drawing.heatmap import draw

    warnings = set[str]()

    def write(number: int, translations: Sequence[Translation]) -> None:
        translation = view(translations[0])
        if translation is None or translation.weights is None:
            return
        for warning in draw(translation, folder / f"{number:05d}.png", head=head, shift=shift):
            if warning not in warnings:
                warnings.add(warning)
                print(f"warning: {warning}", file=sys.stderr)

    return write


def _chunks(path: Path | None, stack: contextlib.ExitStack, decoder: Decoder) -> Iterator[list[str]]:
    """Lists of lines: full lists from a file, the lines that have arrived from a pipe."""
    if path is not None:
        yield from full(stack.enter_context(open_lines(path, decoder)), CHUNK)
    else:
        yield from arriving(iterate_lines(_standard_input(), "standard input", decoder), CHUNK)


def _standard_input() -> BinaryIO:
    """Standard input with a separate reader.

    The interpreter closes its reader at exit, and crashes if a thread still waits in it for a line.
    """
    if sys.stdin is None:
        raise UserError("There is no standard input. Give input=FILE.")
    if sys.stdin.isatty():
        print("Type one sentence per line. Press Ctrl-D to end.", file=sys.stderr)
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a file, for example replaced in a test
        return sys.stdin.buffer


def full(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Lists of `most` lines, or fewer if they are long."""
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
    """Lists of the lines that have arrived: at least one, at most `most`."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=most)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:  # passed on to the reader of the queue
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
