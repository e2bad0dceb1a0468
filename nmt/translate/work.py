"""Translation of the lines of a file or of a pipe; lines of a pipe are translated as they arrive."""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice, repeat
from pathlib import Path

from nmt.alignment.tagged_lines import plain_text, translate_tagged
from nmt.build.approximations import for_text
from nmt.build.heatmaps import pictured_head, view_of
from nmt.build.open import open_linker
from nmt.build.paths import check_paths, check_standard_output, writer, writing
from nmt.build.requests import note_one_document
from nmt.build.torchrun import shared
from nmt.data.document_lines import Follower
from nmt.data.habits import LineWatch
from nmt.data.lines import LineDecoder, open_lines
from nmt.data.streams import decoding, name_of
from nmt.system.errors import UserError
from nmt.system.files import STANDARD, is_regular
from nmt.system.locks import OUTPUT, locked
from nmt.system.memory import few_collections
from nmt.system.terminal import print_message, visible
from nmt.text.canonical import shows_nothing
from nmt.text.known_words import UnseenCount, load_known_words
from nmt.translate.document_file import translate_document
from nmt.translate.line_input import LineProgress, arriving, full, typed
from nmt.translate.output import Format, Line, Write, documents, links_below, links_of_words, pictures, records, terms
from nmt.translate.partial import PartialFiles, partial_files
from nmt.translate.request import Translating
from nmt.translation.glossary import Glossary
from nmt.translation.kept_words import keep_words
from nmt.translation.named_heads import AUTO, MEAN, choose_head, names_all
from nmt.translation.request import Request
from nmt.translation.translator import Translator

CHUNK = 2000  # maximum number of lines in memory


def translate(request: Translating) -> int:
    """Translate `input` to `output` and return the exit status; only translations go to standard output.

    Lines written to a file survive an interruption, and `resume` continues after them. Under torchrun, all processes
    translate; only the leader reads and writes.
    """
    with few_collections(), decoding(request.encoding, "encoding"):
        if request.input is not None and request.is_document:
            return translate_document(request, request.input)
        if request.only_text:
            request = dataclasses.replace(request, translator=for_text(request.translator))
        return shared(request.translator, request.keeps_weights, functools.partial(_translate, request))


def _translate(request: Translating, opened: Callable[[], Translator]) -> int:
    outputs = {key: getattr(request, key) for key in ("output", "alignments", "heatmaps", "terms")}
    outputs["output"] = outputs["output"] or STANDARD
    inputs = {"input": request.input or STANDARD, "prefix": request.prefix, "glossary": request.glossary}
    inputs["memory"] = request.memory
    check_paths(inputs, outputs, folders=("heatmaps",))
    if request.output is None:
        check_standard_output("translations")
    with contextlib.ExitStack() as stack:
        if request.files:
            stack.enter_context(locked(request.files["output"].resolve(), OUTPUT))
        translator = opened()
        for note in request.notes_on_runs:
            print_message(f"note: {note}")
        _check_attention(request, translator)
        glossary = request.open_glossary(translator.tokenizer.target)
        files = _partial_files(request, translator, stack)
        writers = _writers(request, translator, files, stack)
        if glossary is not None and request.terms is not None:
            writers.append(terms(writer(stack, request.terms), glossary, translator.tokenizer.target))
        _Work(request, translator, glossary, files, stack).do(writers)
    return 0


def _partial_files(request: Translating, translator: Translator, stack: contextlib.ExitStack) -> PartialFiles | None:
    """The partial files of the request; None without output files, or if a line has several translations."""
    countable = translator.search.nbest == 1 or request.format == "json"
    if request.resumes != "false" and not countable:
        raise UserError(f"resume={request.resumes} needs one translation a line. Leave out resume= or search.nbest=.")
    return stack.enter_context(partial_files(request.files, request.resumes)) if request.files and countable else None


def _check_attention(request: Translating, translator: Translator) -> None:
    """Raise UserError if the request needs attention and the run has none; print notes on weaker needs."""
    if request.draws_weights and not translator.attends:
        raise UserError(
            "alignments=, heatmaps= and show=links need attention, but this run has none (decoder=none). Leave them "
            "out, or use a run with attention."
        )
    if request.has_terms and not translator.attends:
        print_message(
            "note: decoder=none has no attention, so terms are used wherever they are likeliest, and may be misplaced."
        )
    if request.tags != "none" and translator.search.nbest > 1:
        raise UserError(f"tags={request.tags} is for one translation a line. Leave search.nbest= out.")
    if request.tags != "none" and not translator.attends:
        print_message("note: this run has no attention (decoder=none), so tags stand where they stood in their line.")
    if request.weights and not translator.attends:
        raise UserError("weights=true needs attention, but this run has none (decoder=none). Leave it out.")


def _writers(
    request: Translating, translator: Translator, files: PartialFiles | None, stack: contextlib.ExitStack
) -> list[Write]:
    """The functions that write the records, links and heatmaps of a line."""
    pictured = pictured_head(request.view, request.head, translator) if request.heatmaps is not None else AUTO
    head = _head(request, translator)
    writers: list[Write]

    def line_writer(key: str, path: Path | None) -> Callable[[str], None]:
        return files.writer(key) if files is not None and key in request.files else writer(stack, path)

    written = line_writer("output", request.output)
    # Text on a terminal must not contain control sequences.
    output = (lambda record: written(visible(record))) if request.converses else written
    if request.format == "json":
        named, _ = choose_head(translator.heads, head)
        writers = [documents(output, translator, named, request.shift, request.include)]
    else:
        nbest = translator.search.nbest
        doubts = request.translator.doubts
        remembers = request.memory is not None
        form = Format(request.format, nbest, request.scores, request.weights, head, request.shift, doubts, remembers)
        writers = [functools.partial(records, output, form)]
        if legend := form.legend():
            print_message(legend)
    if request.show == "links":
        writers.append(functools.partial(links_below, line_writer("output", None), head, request.shift))
    if request.alignments is not None:
        write_line = line_writer("alignments", request.alignments)
        writers.append(functools.partial(links_of_words, write_line, head, request.shift))
    if request.heatmaps is not None:
        view = functools.partial(view_of, translator, request.view)
        heads = head if pictured == AUTO else pictured
        writers.append(pictures(request.heatmaps, request.heatmap_format, heads, request.shift, view))
    return writers


class _Work:
    """Translates an input chunk by chunk, and resumes where an interrupted command has stopped."""

    def __init__(
        self,
        request: Translating,
        translator: Translator,
        glossary: Glossary | None,
        files: PartialFiles | None,
        stack: contextlib.ExitStack,
    ) -> None:
        self.request, self.translator, self.glossary, self.files = request, translator, glossary, files
        self.done = 0 if files is None else files.lines
        self.fewer = 0  # lines with fewer translations than search.nbest
        self.prefixes = _Prefixes(request.prefix, stack)
        self.follower = Follower(translator.context_sentences, request.documents)
        self.progress = stack.enter_context(LineProgress(request.input, self.done, has_bar=bool(request.files)))
        self.decoder = LineDecoder(request.invalid, self._warn)
        facts = request.translator.runs[0].facts
        self.watch = LineWatch(str(request.input or "standard input"), facts)
        self.unseen = UnseenCount(load_known_words(request.translator.runs[0].files.words))
        head = AUTO if names_all(request.head) else request.head
        self.linker = open_linker(request.translator.runs[0], translator, head, request.shift)
        self._stack = stack

    def do(self, writers: Sequence[Write]) -> None:
        """Translate the remaining lines, and pass each to all writers."""
        for lines in self._chunks():
            requests = self._take(lines)
            batches = -(-len(lines) // (self.translator.batch_sentences * self.translator.processes.count))
            for line in self._translated(requests, self.progress.counter(len(lines), batches)):
                self.done += 1
                self._warn_all([f"line {line.number} {note}" for note in line.translations[0].notes])
                self.progress.count_remembered(line.translations[0])
                few = len(line.translations) < self.translator.search.nbest
                self.fewer += few and not shows_nothing(line.translations[0].source)
                for write in writers:
                    write(line)
            self.progress.add(len(lines))
            if self.request.converses:
                self._say_unlike()
            if self.request.output is None:
                with writing(None):
                    sys.stdout.flush()
            if self.files is not None:
                self.files.flush()
        self.prefixes.check_end()
        self.decoder.close()
        self._say_unlike()
        self.progress.say_remembered()
        if self.fewer:
            most = self.translator.search.nbest
            print_message(f"note: {self.fewer:,} lines have fewer than {most} different translations.")
        if self.follower.unseparated:
            note_one_document(self.done)

    def _translated(self, requests: Sequence[Request], begins: Callable[[], None]) -> Iterator[Line]:
        """Yield the next lines with their translations; for search trees, lines are searched one by one."""
        first = self.done + 1
        keep = functools.partial(keep_words, self.translator) if self.request.translator.keep_words else list
        if not self.request.keeps_beam:
            translate = functools.partial(
                self.translator.translate_chunk, first_line=first, begins=begins, report=self._warn
            )
            if self.request.tags == "html":
                ranked = translate_tagged(requests, lambda asked: translate(keep(asked)), self.linker)
            else:
                ranked = translate(keep(requests))
            if self.request.doubts is not None:
                ranked = self.request.doubts.add(self.translator, ranked)
            yield from map(Line, count(first), ranked, (request.prefix for request in requests))
            return
        from nmt.inspection.details import searched

        for number, request in enumerate(keep(requests), first):
            translations, beam = searched(self.translator, request, tree=True, line=number)
            if self.request.doubts is not None:
                (translations,) = self.request.doubts.add(self.translator, [translations])
            yield Line(number, translations, request.prefix, beam)

    def _take(self, lines: Sequence[str]) -> list[Request]:
        """The requests for the next lines, with their prefixes and contexts."""
        given = self.prefixes.take(len(lines))
        texts = [plain_text(line) for line in lines] if self.request.tags == "html" else lines
        self._warn_all(self.watch.add(texts))
        self.unseen.add(texts)
        asked = zip(lines, given or repeat(""), self.follower.take(texts), strict=False)
        return [Request(*each, glossary=self.glossary, memory=self.request.pairs) for each in asked]

    def _chunks(self) -> Iterator[list[str]]:
        """Yield lists of the remaining lines: full lists from a file; from a pipe, the lines that have arrived."""
        path = self.request.input or STANDARD
        if self.request.converses:
            yield from typed(f"{self.request.translator.runs[0].languages[0]}> ", self.decoder)
            return
        lines = self._stack.enter_context(open_lines(path, self.decoder, tables=False))
        if self.done:
            skipped = 0
            for chunk in full(islice(lines, self.done), CHUNK):
                self._take(chunk)
                skipped += len(chunk)
            if skipped < self.done:
                raise UserError(
                    f"{name_of(path)} has {skipped:,} lines, but {self.done:,} are translated already. Give the same "
                    "text with resume=true."
                )
            print_message(f"{self.done:,} lines are translated already.")
        most = 1 if self.request.keeps_beam else CHUNK  # lines that are searched one by one are saved one by one
        awaited = path == STANDARD or (self.files is None and not is_regular(path))
        yield from arriving(lines, most) if awaited else full(lines, most)

    def _say_unlike(self) -> None:
        """Print warnings and notes on lines that differ from the training text."""
        self._warn_all(self.watch.notes())
        for note in self.unseen.note():
            self.progress.say(f"note: {visible(note)}")

    def _warn_all(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._warn(line)

    def _warn(self, line: str) -> None:
        self.progress.say(f"warning: {line}")


def _head(request: Translating, translator: Translator) -> str:
    """The head for links and heatmaps; for head=auto, a note is printed if the model has several layers."""
    of_pictures = request.heatmaps is not None and (request.view != "cross" or names_all(request.head))
    head, reason = choose_head(translator.heads, AUTO if of_pictures else request.head)
    if reason == "set" or len(translator.heads.names) < 2:
        return head if reason == "set" else AUTO
    links = request.alignments is not None or request.format != "text" or request.show is not None
    links = links or request.tags != "none"
    if head != MEAN and (links or (request.draws_weights and not of_pictures)):
        print_message(
            f"head=auto: links and heatmaps use head={head}, the {translator.heads.describe(head)}. To see which head "
            f"aligns best: python -m nmt.align run={request.translator.runs[0].folder}",
        )
    return head


class _Prefixes:
    """The lines of the prefix file, one per line to translate; empty without a prefix file."""

    def __init__(self, path: Path | None, stack: contextlib.ExitStack) -> None:
        self.path, self.count = path, 0
        self.lines = iter(()) if path is None else stack.enter_context(open_lines(path, tables=False))

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
