"""Translation of a document (.docx, .srt ...), with the package `nmt.documents` (the extra `documents`)."""

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.alignment.tag_projection import LinkedText
from nmt.build.approximations import for_text
from nmt.build.open import open_linker
from nmt.build.paths import check_paths, is_replaceable, writer
from nmt.build.torchrun import shared
from nmt.data.document_lines import Follower
from nmt.data.languages import canonical
from nmt.search import BeamSearch
from nmt.system.errors import UserError, install_command
from nmt.system.files import write_bytes
from nmt.system.locks import OUTPUT, locked
from nmt.system.terminal import print_message, visible
from nmt.text.known_words import UnseenCount, load_known_words
from nmt.translate.line_input import LineProgress
from nmt.translate.output import MARKS, Line, Write, as_line, terms, with_marks
from nmt.translate.partial import PartialFiles, partial_files
from nmt.translate.request import Translating
from nmt.translation.glossary import Glossary, Keep
from nmt.translation.kept_words import keep_words
from nmt.translation.named_heads import AUTO, names_all
from nmt.translation.request import Request
from nmt.translation.term_files import open_glossary
from nmt.translation.translator import Translator
from nmt.translation.types import Doubt, Translation

if TYPE_CHECKING:
    from nmt.documents.formats import Document

CHUNK = 500  # sentences that are translated before the journal is flushed
_LISTED = 20  # maximum number of sentences with doubtful words in a note


def translate_document(request: Translating, path: Path) -> int:
    """Translate the document at `path` to `output`, and return the exit status.

    Raises:
        UserError: a setting is for lines only, a path is invalid, or the document cannot be read.
    """
    output = request.output
    if output is None or not is_replaceable(output) or output.suffix.lower() != path.suffix.lower():
        raise UserError(
            f"input={path} is a document, so its translation is one, too. Give output=NAME{path.suffix}. (A file of "
            "plain lines with this ending: input_format=lines)"
        )
    if lines_only := request.lines_only:
        raise UserError(f"{', '.join(lines_only)}: for lines only, and input={path} is a document. Leave it out.")
    inputs = {"input": path, "glossary": request.glossary, "memory": request.memory}
    check_paths(inputs, {"output": output}, text=False)
    check_paths(inputs, {"terms": request.terms})
    if request.terms is not None and request.terms.resolve() == output.resolve():
        raise UserError(f"terms and output are both {output}. Give two different paths.")
    document = _read(path, *request.translator.runs[0].languages, request.encoding)
    has_tags = any(segment.tags for segment in document.segments)
    translator = for_text(request.translator)  # also exact enough to place tags
    request = dataclasses.replace(request, translator=translator)
    return shared(translator, has_tags, functools.partial(_write, request, document, output))


def _read(path: Path, source: str, target: str, encoding: str | None) -> "Document":
    try:
        from nmt.documents.formats import read_document

        return read_document(path, source, target, encoding, canonical)
    except ModuleNotFoundError as error:
        raise UserError(
            f"input={path}: documents need the Python package {error.name}. Install it: {install_command('documents')}"
        ) from error


def _write(request: Translating, document: "Document", output: Path, opened: Callable[[], Translator]) -> int:
    from nmt.documents.sentences import SplitDocument

    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output.resolve(), OUTPUT))
        translator = opened()
        if translator.search.nbest > 1:
            raise UserError("A document has one translation a sentence. Leave search.nbest= out.")
        glossary = _open_glossary(request, translator, document)
        files = stack.enter_context(partial_files({"output": output}, request.resumes, "sentences"))
        report: list[Write] = []
        if glossary is not None and request.terms is not None:
            report = [terms(writer(stack, request.terms), glossary, translator.tokenizer.target, "sentence")]
        work = _DocumentWork(request, translator, glossary, files, report)
        split = SplitDocument(document, request.translator.runs[0].languages[0])
        write_bytes(output, document.write(split.joined(work.translate(split.sentences, split.has_tags))))
        files.delete()
    nothing = [] if document.segments else ["there was nothing to translate, so it equals the input."]
    nothing += request.notes_on_runs
    unseen = UnseenCount(load_known_words(request.translator.runs[0].files.words))
    unseen.add(split.sentences)
    for note in [*nothing, *document.notes, *map(visible, unseen.note()), *work.doubt_notes()]:
        print_message(f"note: {output}: {note}")
    return 0


def _open_glossary(request: Translating, translator: Translator, document: "Document") -> Glossary | None:
    """The terms of the request; None without terms. Formats with placeholders keep these if the search is a beam."""
    from nmt.documents.formats import WITH_PLACEHOLDERS

    assert request.input is not None
    keep: Keep | Sequence[Keep] | None = request.keep
    if keep is None and request.input.suffix.lower() in WITH_PLACEHOLDERS:
        keep = "placeholders"
        if not isinstance(translator.search, BeamSearch):
            placeholders, keep = Glossary(keep=[keep]), None
            if count := sum(bool(placeholders.find(segment.text)) for segment in document.segments):
                print_message(
                    f"note: {count:,} texts of {request.input} have placeholders, which only beam search keeps. Check "
                    "them, or give search=beam."
                )
    languages = request.translator.runs[0].languages
    return open_glossary(request.glossary, keep, translator.tokenizer.target, languages)


@dataclasses.dataclass
class _DocumentWork:
    """Translates the sentences of a document, and resumes where an interrupted command has stopped.

    A line of the journal has a sentence, its translation, the words of both, their links, and null or the doubts: the
    number of words, the number of doubtful words, and the translation with marks around doubtful words.
    """

    request: Translating
    translator: Translator
    glossary: Glossary | None
    files: PartialFiles
    writers: Sequence[Write] = ()

    def __post_init__(self) -> None:
        head = AUTO if names_all(self.request.head) else self.request.head
        self.linker = open_linker(self.request.translator.runs[0], self.translator, head, self.request.shift)
        self.doubts = list[Sequence[Any]]()

    def translate(self, texts: Sequence[str], has_tags: Sequence[bool]) -> Iterator[LinkedText]:
        """Yield the translation of each sentence with its links, in order; the sentences before it are its context.

        Only sentences with tags are linked by attention.
        """
        follower = Follower(self.translator.context_sentences, self.request.documents)
        done = list(map(self._journal_sentence, self.files.lines_in("output"), texts))
        if len(done) < self.files.lines:
            raise self._other()
        if done:
            print_message(f"{len(done):,} sentences are translated already.")
            follower.take(texts[: len(done)])
        yield from done
        write = self.files.writer("output")
        with LineProgress(None, len(done), sentences=len(texts)) as progress:
            for first in range(len(done), len(texts), CHUNK):
                chunk = texts[first : first + CHUNK]
                contexts = follower.take(chunk)
                linked = list[LinkedText]()
                for number, best in enumerate(self._translated(chunk, contexts, progress), first + 1):
                    for note in best.notes:
                        progress.say(f"warning: sentence {number} {note}")
                    progress.count_remembered(best)
                    for write_line in self.writers:
                        write_line(Line(number, [best]))
                    best = best if has_tags[number - 1] else best._replace(weights=None)
                    linked.append(LinkedText.of(best, self.linker).stripped())
                    write(as_line([*linked[-1][:5], self._doubt(best)]))
                self.files.flush()
                progress.add(len(chunk))
                if first + CHUNK >= len(texts):  # here, since the caller stops after the last sentence
                    progress.say_remembered()
                yield from linked

    def _translated(
        self, texts: Sequence[str], contexts: Iterable[Sequence[str]], progress: LineProgress
    ) -> Iterator[Translation]:
        requests = [
            Request(text, "", context, glossary=self.glossary, memory=self.request.pairs)
            for text, context in zip(texts, contexts, strict=True)
        ]
        if self.request.translator.keep_words:
            requests = keep_words(self.translator, requests)
        batches = -(-len(texts) // (self.translator.batch_sentences * self.translator.processes.count))
        ranked: Sequence[Sequence[Translation]] = self.translator.translate_chunk(
            requests, begins=progress.counter(len(texts), batches), report=progress.say
        )
        if self.request.doubts is not None:
            ranked = self.request.doubts.add(self.translator, ranked)
        return (each[0] for each in ranked)

    def _doubt(self, best: Translation) -> Sequence[Any] | None:
        if self.request.doubts is None:
            return None
        doubt = best.doubt or Doubt(())
        self.doubts.append((len(doubt.confidence), len(doubt.doubtful), "".join(with_marks(best, MARKS, str))))
        return self.doubts[-1]

    def _journal_sentence(self, line: str, text: str) -> LinkedText:
        """Read a sentence of the journal (UserError if it differs from `text`, the sentence of the document)."""
        try:
            source, target, source_words, target_words, links, doubt = json.loads(line)
        except (ValueError, TypeError) as error:  # not a journal: partial translations of plain lines, for instance
            raise self._other() from error
        if source != text or (doubt is None) != (self.request.doubts is None):
            raise self._other()
        self.doubts += [doubt] if doubt else []
        return LinkedText.of_words(source, target, source_words, target_words, links)

    def _other(self) -> UserError:
        return UserError(
            f"{self.request.output}.part is of another document, or was begun with other settings. Give the same ones, "
            "or delete it to start again."
        )

    def doubt_notes(self) -> Iterator[str]:
        """Yield a note on the number of doubtful words and the sentences with them; nothing without doubts."""
        if not self.doubts:
            return
        doubtful = [(number, text) for number, (_, count, text) in enumerate(self.doubts, 1) if count]
        words, wrong = (sum(doubt[at] for doubt in self.doubts) for at in (0, 1))
        more = f" The first {_LISTED}:" if len(doubtful) > _LISTED else ""
        listed = "".join(f"\n  sentence {number}: {visible(text)}" for number, text in doubtful[:_LISTED])
        yield (
            f"{wrong:,} of {words:,} words are more likely wrong than right, in {len(doubtful):,} of "
            f"{len(self.doubts):,} sentences.{more}{listed}"
        )
