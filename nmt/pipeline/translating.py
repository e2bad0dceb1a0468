"""From lines to translated lines: a file, or a pipe whose lines are translated as they arrive."""

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from nmt.data.document_lines import Followed, Follower
from nmt.data.habits import LineWatch
from nmt.data.languages import UNNAMED
from nmt.data.lines import Invalid, LineDecoder, open_lines
from nmt.data.streams import name_of
from nmt.errors import UserError
from nmt.files import STANDARD, is_regular
from nmt.heads import AUTO, MEAN, described, names_all
from nmt.model.weights import fingerprint
from nmt.pipeline.chunks import arriving, full, typed
from nmt.pipeline.fast_search import for_text
from nmt.pipeline.formats import Format
from nmt.pipeline.line_progress import LineProgress
from nmt.pipeline.line_writers import Line, Write, documents, links_below, links_of_words, pictures, records
from nmt.pipeline.opening import TranslatorRequest, default_head, has_weights, head_of
from nmt.pipeline.partial import LinesDigest, PartialFiles, Resume, partial_files
from nmt.pipeline.paths import check_paths, check_standard_output, is_replaceable, writer, writing
from nmt.pipeline.sharing import share, shared
from nmt.pipeline.viewing import pictured_head, view_of
from nmt.processes import Processes
from nmt.terminal import print_message, visible
from nmt.text.canonical import shows_nothing
from nmt.translation.stepping import heads_of
from nmt.translation.translator import Translator, Watch
from nmt.translation.types import View

CHUNK = 2000  # maximum number of lines in memory
SAVE_SECONDS = 10  # at least, between two notes of how far the files are


@dataclass(frozen=True)
class Translating:
    """What `nmt.translate` is asked to do; `configs/translate.yaml` explains the settings."""

    translator: TranslatorRequest
    input: Path | None
    output: Path | None
    format: Literal["text", "tsv", "jsonl", "json"]
    scores: bool
    weights: bool
    include: Sequence[str]
    prefix: Path | None
    alignments: Path | None
    heatmaps: Path | None
    view: View
    head: str
    shift: Literal[0, 1]
    show: Literal["links"] | None
    documents: Followed
    invalid: Invalid
    resume: Any

    def __post_init__(self) -> None:
        for key in ("input", "output"):  # standard input and output, as without them
            if getattr(self, key) == STANDARD:
                object.__setattr__(self, key, None)
        if self.view != "cross" and self.heatmaps is None:
            raise UserError(f"view={self.view} is for heatmaps. Give heatmaps=FOLDER as well.")
        if self.show and (self.output is not None or self.format != "text"):
            raise UserError(f"show={self.show} is for text on standard output. For a file, give alignments=FILE.")
        if self.weights and self.format != "jsonl":
            raise UserError("weights=true needs format=jsonl. With format=json, give include=[alignment,weights].")
        if self.format == "json":
            from nmt.inspection.details import included

            included(self.include)
        elif [*self.include] != ["alignment"]:
            raise UserError("include= needs format=json.")
        if self.resumes not in get_args(Resume):
            raise UserError(f"resume={self.resume}: must be true, auto or false.")
        if self.resumes != "false" and not self.files:
            raise UserError(f"resume={self.resumes} needs a file to continue. Give output=FILE as well.")

    @property
    def keeps_beam(self) -> bool:
        """Whether the tree of each search is wanted, so that each line is searched alone."""
        return self.format == "json" and "beam" in self.include

    @property
    def converses(self) -> bool:
        """Whether lines are typed into a terminal, and their translations are shown there."""
        streams = sys.stdin, sys.stdout
        return self.input is self.output is None and all(stream is not None and stream.isatty() for stream in streams)

    @property
    def resumes(self) -> Resume:
        """The setting `resume`, which YAML may have read as a boolean."""
        return cast("Resume", str(self.resume).lower())

    @property
    def files(self) -> dict[str, Path]:
        """The output files that are kept when the command is interrupted, by key; none without `output`."""
        if self.output is None or not is_replaceable(self.output):
            return {}
        outputs = {"output": self.output, "alignments": self.alignments}
        return {key: path for key, path in outputs.items() if path is not None and is_replaceable(path)}

    @property
    def draws_weights(self) -> bool:
        """Whether any output needs the weights of the attention to the source."""
        pictures = self.heatmaps is not None and self.view == "cross"
        return self.alignments is not None or self.show is not None or pictures

    @property
    def only_text(self) -> bool:
        """Whether no numbers of the model are wanted."""
        return not (self.keeps_weights or self.scores)

    @property
    def keeps_weights(self) -> bool:
        """Whether translations have weights."""
        return self.draws_weights or self.format != "text"


def translate(request: Translating) -> int:
    """Translate `input` to `output`; nothing but translations goes to standard output.

    What is written to a file is kept when the command is interrupted, and `resume` goes on from there. Under torchrun
    all processes translate, and the leader reads and writes.
    """
    if request.only_text:
        request = dataclasses.replace(request, translator=for_text(request.translator))
    return shared(request.translator, request.keeps_weights, functools.partial(_translate, request))


def _translate(request: Translating, processes: Processes) -> int:
    outputs = {key: getattr(request, key) for key in ("output", "alignments", "heatmaps")}
    outputs["output"] = outputs["output"] or STANDARD
    check_paths({"input": request.input or STANDARD, "prefix": request.prefix}, outputs, folders=("heatmaps",))
    if request.output is None:
        check_standard_output("translations")
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(partial_files(request.files, request.resumes)) if request.files else None
        translator = _open(request)
        share(translator, processes)
        writers = _writers(request, translator, files, stack)
        _Work(request, translator, files, stack).do(writers)
    return 0


def _open(request: Translating) -> Translator:
    """The translator, if it can do what the request asks for."""
    translator = request.translator.open(request.keeps_weights)
    if request.draws_weights and not has_weights(translator):
        raise UserError(
            "alignments=, heatmaps= and show=links need attention, but this run has none (decoder=none). Leave them "
            "out, or use a run with attention."
        )
    if request.weights and not has_weights(translator):
        raise UserError("weights=true needs attention, but this run has none (decoder=none). Leave it out.")
    return translator


def _writers(
    request: Translating, translator: Translator, files: PartialFiles | None, stack: contextlib.ExitStack
) -> list[Write]:
    """What writes the translations of a line: records, links, heatmaps."""
    pictured = pictured_head(request.view, request.head, translator) if request.heatmaps is not None else AUTO
    head, nbest = _head(request, translator), translator.search.nbest
    if pictured == AUTO:
        pictured = head

    def line_writer(key: str, path: Path | None) -> Callable[[str], None]:
        return files.writer(key) if files is not None and key in request.files else writer(stack, path)

    output = line_writer("output", request.output)
    if request.converses:
        output = functools.partial(_write_visible, output)
    if request.format == "json":
        named = default_head(request.translator.runs, translator) if head == AUTO else head
        writers = [documents(output, translator, named, request.shift, request.include)]
    else:
        form = Format(request.format, nbest, request.scores, request.weights, head, request.shift)
        writers = [records(output, form)]
        if legend := form.legend():
            print_message(legend)
    if request.show == "links":
        writers.append(links_below(line_writer("output", None), head, request.shift))
    if request.alignments is not None:
        writers.append(links_of_words(line_writer("alignments", request.alignments), head, request.shift))
    if request.heatmaps is not None:
        view = functools.partial(view_of, translator, request.view)
        writers.append(pictures(request.heatmaps, pictured, request.shift, view))
    return writers


def _write_visible(write_line: Callable[[str], None], record: str) -> None:
    """Write a record for a terminal, which must not obey it."""
    write_line(visible(record))


class _Work:
    """The translation of an input, chunk by chunk, from where an interrupted command has stopped."""

    def __init__(
        self, request: Translating, translator: Translator, files: PartialFiles | None, stack: contextlib.ExitStack
    ) -> None:
        self.request, self.translator, self.files = request, translator, files
        self.done = 0 if files is None else files.saved.lines
        self.fewer = 0  # lines with fewer translations than were asked for
        self.digest = LinesDigest()
        self.prefixes = _Prefixes(request.prefix, stack)
        self.follower = Follower(translator.context_sentences, request.documents)
        self.progress = stack.enter_context(LineProgress(request.input, self.done, shown=files is not None))
        self.decoder = LineDecoder(request.invalid, self._warn)
        facts = request.translator.runs[0].facts()
        self.watch = LineWatch(str(request.input or "standard input"), facts)
        self._stack, self._last_save = stack, time.monotonic()
        if self.files is not None:
            translator.warn = self._warn

    def do(self, writers: Sequence[Write]) -> None:
        """Translate what is not done yet."""
        if self.files is not None and self.done:
            self.files.check_settings(settings_of(self.request, self.translator))
        for lines in self._chunks():
            given, contexts = self._take(lines)
            batches = -(-len(lines) // (self.translator.batch_sentences * self.translator.processes.count))
            watch = self.progress.watch(len(lines), batches)
            for line in self._translated(lines, given, contexts, watch):
                self.done += 1
                few = len(line.translations) < self.translator.search.nbest
                self.fewer += few and not shows_nothing(line.translations[0].source)
                for write in writers:
                    write(line)
            self.progress.add(len(lines))
            if self.request.converses:
                self._warn_all(self.watch.notes())
            if self.request.output is None:
                with writing(None):
                    sys.stdout.flush()
            self._save()
        self.prefixes.check_end()
        self.decoder.close()
        self._warn_all(self.watch.notes())
        if self.fewer:
            most = self.translator.search.nbest
            print_message(f"note: {self.fewer:,} lines have fewer than {most} different translations.")
        if self.follower.unseparated:
            note_one_document(self.done)

    def _translated(
        self, lines: Sequence[str], given: Sequence[str], contexts: Sequence[Sequence[str]], watch: Watch
    ) -> Iterator[Line]:
        """The next lines, translated; one at a time if the tree of each search is wanted."""
        first, prefixes = self.done + 1, given or [""] * len(lines)
        if not self.request.keeps_beam:
            ranked = self.translator.translate_chunk(lines, first, given, contexts, watch=watch)
            yield from map(Line, count(first), ranked, prefixes)
            return
        from nmt.inspection.details import searched

        for number, (text, prefix, context) in enumerate(zip(lines, prefixes, contexts, strict=True), first):
            translations, beam = searched(self.translator, text, prefix, context=context, tree=True, line=number)
            yield Line(number, translations, prefix, beam)

    def _take(self, lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        """The prefixes and the contexts of the next lines."""
        given = self.prefixes.take(len(lines))
        self._warn_all(self.watch.add(lines))
        if self.files is not None:
            self.digest.add(lines, given)
        return given, self.follower.take(lines)

    def _chunks(self) -> Iterator[list[str]]:
        """Lists of lines that are not done: full lists from a file, the lines that have arrived from a pipe."""
        path = self.request.input or STANDARD
        if self.request.converses:
            yield from typed(f"{self.request.translator.runs[0].facts().get('languages', UNNAMED)[0]}> ", self.decoder)
            return
        lines = self._stack.enter_context(open_lines(path, self.decoder))
        if self.files is not None and self.done:
            count = 0
            for chunk in full(islice(lines, self.done), CHUNK):
                self._take(chunk)
                count += len(chunk)
            if count < self.done or str(self.digest) != self.files.saved.digest:
                raise UserError(
                    f"The first {self.done:,} lines of {name_of(path)}, or their prefixes, are not those "
                    "whose translation was interrupted. Give the same text with resume=true."
                )
            print_message(f"{self.done:,} lines are translated already.")
        most = 1 if self.request.keeps_beam else CHUNK  # lines that are searched alone are saved one by one
        awaited = path == STANDARD or (self.files is None and not is_regular(path))
        yield from arriving(lines, most) if awaited else full(lines, most)

    def _save(self) -> None:
        """Note how far the files are, if the last time is some seconds ago."""
        if self.files is None or self.done == self.files.saved.lines:
            return
        if time.monotonic() - self._last_save >= SAVE_SECONDS:
            self.files.save(self.done, self.digest, settings_of(self.request, self.translator))
            self._last_save = time.monotonic()

    def _warn_all(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._warn(line)

    def _warn(self, line: str) -> None:
        self.progress.say(f"warning: {line}")


def settings_of(request: Translating, translator: Translator) -> dict[str, Any]:
    """What the translations of a line depend on; rounding apart, which depends on device, threads and batches."""
    names = ("format", "scores", "weights", "head", "shift", "view", "documents")
    opened = ("length_ratio", "extra_length", "max_source_length", "long_lines", "context_sentences")
    search = {name: value for name, value in vars(translator.search).items() if name[0] != "_"}
    return {
        **{name: getattr(request, name) for name in names},
        **({"include": [*request.include]} if request.format == "json" else {}),
        **{name: getattr(translator, name) for name in opened},
        "shortlist": request.translator.shortlist or 0,
        "slots": request.translator.slots,
        "search": {"name": type(translator.search).__name__, **search},
        "precision": str(translator.compute.dtype),
        "tokenizer": translator.tokenizer.fingerprint,
        "weights of the models": [fingerprint(model) for model in translator.models],
    }


def note_one_document(lines: int) -> None:
    """Say that lines are taken for one document, because a run with context has met no empty line among them."""
    if lines > 1:
        print_message(
            f"No empty line among {lines:,} lines: all are taken for one document. If they are not, separate documents "
            "with empty lines, or give documents=none.",
        )


def _head(request: Translating, translator: Translator) -> str:
    """The head of links and heatmaps; for head=auto with a note if the model has several layers."""
    of_pictures = request.heatmaps is not None and (request.view != "cross" or names_all(request.head))
    heads = heads_of(translator.models)
    head = AUTO if of_pictures else head_of(request.head, translator)
    if head != AUTO or len(heads) < 2:
        return head
    head = default_head(request.translator.runs, translator)
    links = request.alignments is not None or request.format != "text" or request.show is not None
    if head != MEAN and (links or (request.draws_weights and not of_pictures)):
        print_message(
            f"head=auto: links and heatmaps use head={head}, the {described(head, heads).partition(' (')[0]}. To see "
            f"which head aligns best: python -m nmt.align run={request.translator.runs[0].folder}",
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
