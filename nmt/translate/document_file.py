"""The translation of a document (.docx, .srt ...), for which the room `documents` is opened: an extra."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.alignment.tag_projection import LinkedText
from nmt.build.approximations import for_text
from nmt.build.open import open_linker
from nmt.build.paths import check_paths, is_replaceable
from nmt.build.torchrun import shared
from nmt.data.document_lines import Follower
from nmt.system.errors import UserError, install_command
from nmt.system.files import write_bytes
from nmt.system.locks import OUTPUT, locked
from nmt.system.terminal import print_message
from nmt.translate.lines import LineProgress
from nmt.translate.request import Translating
from nmt.translation.glossary import Glossary
from nmt.translation.heads import AUTO, names_all
from nmt.translation.request import Request
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.documents.formats import Document

_CHUNK = 2000  # sentences that are translated between two messages


def translate_document(request: Translating, path: Path) -> int:
    """Translate the document at `path` to `output`, and return the exit status.

    Raises:
        UserError: a setting is for lines only, or the document cannot be read.
    """
    output = request.output
    if output is None or not is_replaceable(output) or output.suffix.lower() != path.suffix.lower():
        raise UserError(
            f"input={path} is a document, so its translation is one, too. Give output=NAME{path.suffix}, or translate "
            "it line by line: input_format=lines"
        )
    if lines_only := request.lines_only:
        raise UserError(f"{', '.join(lines_only)}: for lines only, and input={path} is a document. Leave it out.")
    check_paths({"input": path, "glossary": request.glossary}, {"output": output}, text=False)
    document = _read(path, *request.translator.runs[0].languages)
    has_tags = any(segment.tags for segment in document.segments)
    translator = request.translator if has_tags else for_text(request.translator)
    request = dataclasses.replace(request, translator=translator)
    return shared(translator, has_tags, functools.partial(_write, request, document, output))


def _read(path: Path, source: str, target: str) -> "Document":
    try:
        from nmt.documents.formats import read_document

        return read_document(path, source, target)
    except ModuleNotFoundError as error:
        raise UserError(
            f"input={path}: documents need the Python package {error.name}. Install it: {install_command('documents')}"
        ) from error


def _write(request: Translating, document: "Document", output: Path, opened: Callable[[], Translator]) -> int:
    from nmt.documents.sentences import translated

    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output.resolve(), OUTPUT))
        translator = opened()
        if translator.search.nbest > 1:
            raise UserError("A document has one translation a sentence. Leave search.nbest= out.")
        progress = stack.enter_context(LineProgress(None, 0))
        glossary = request.open_glossary(translator.tokenizer.target)
        translate = functools.partial(_linked, request, translator, glossary, progress)
        write_bytes(output, document.write(translated(document, request.translator.runs[0].languages[0], translate)))
    for note in document.notes:
        print_message(f"note: {output}: {note}")
    return 0


def _linked(
    request: Translating,
    translator: Translator,
    glossary: Glossary | None,
    progress: LineProgress,
    texts: Sequence[str],
) -> Iterator[LinkedText]:
    """The translation of each sentence with its links, in order, with the sentences before it as context."""
    head = AUTO if names_all(request.head) else request.head
    linker = open_linker(request.translator.runs[0], translator, head, request.shift)
    follower = Follower(translator.context_sentences, request.documents)
    for first in range(0, len(texts), _CHUNK):
        chunk = texts[first : first + _CHUNK]
        requests = [
            Request(text, "", context, glossary=glossary)
            for text, context in zip(chunk, follower.take(chunk), strict=True)
        ]
        batches = -(-len(chunk) // (translator.batch_sentences * translator.processes.count))
        watch = progress.watch(len(chunk), batches)
        for number, ranked in enumerate(translator.translate_chunk(requests, watch=watch, report=progress.say)):
            for note in ranked[0].notes:
                progress.say(f"warning: sentence {first + number + 1} {note}")
            yield LinkedText.of(ranked[0], linker).stripped()
        progress.add(len(chunk))
