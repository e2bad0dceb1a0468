"""The translation of a document (.docx, .srt ...), for which the room `documents` is opened: an extra."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from nmt.build.paths import check_paths, is_replaceable
from nmt.data.document_lines import Follower
from nmt.system.errors import UserError, install_command
from nmt.system.files import write_bytes
from nmt.system.locks import OUTPUT, locked
from nmt.system.terminal import print_message
from nmt.translate.lines import LineProgress
from nmt.translate.request import Translating
from nmt.translation.request import Request
from nmt.translation.translator import Translator

_CHUNK = 2000  # sentences that are translated between two messages


def translate_document(request: Translating, opened: Callable[[], Translator]) -> int:
    """Translate the document `input` to `output`, and return the exit status.

    Raises:
        UserError: a setting is for lines only, or the document cannot be read.
    """
    path, output = request.input, request.output
    if path is None or output is None or not is_replaceable(output) or output.suffix.lower() != path.suffix.lower():
        raise UserError(
            f"input={path} is a document, so its translation is one, too. Give output=NAME{path.suffix if path else ''}"
            ", or translate it line by line: input_format=lines"
        )
    if lines_only := request.lines_only:
        raise UserError(f"{', '.join(lines_only)}: for lines only, and input={path} is a document. Leave it out.")
    check_paths({"input": path}, {"output": output}, text=False)
    try:
        from nmt.documents.formats import read_document
        from nmt.documents.sentences import translated
    except ModuleNotFoundError as error:
        raise UserError(
            f"input={path}: documents need the Python package {error.name}. Install it: {install_command('documents')}"
        ) from error
    source, target = request.translator.runs[0].languages
    document = read_document(path, source, target)
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(output.resolve(), OUTPUT))
        translator = opened()
        progress = stack.enter_context(LineProgress(None, 0))
        write_bytes(
            output,
            document.write(translated(document, source, lambda texts: _texts(request, translator, progress, texts))),
        )
    for note in document.notes:
        print_message(f"note: {output}: {note}")
    return 0


def _texts(request: Translating, translator: Translator, progress: LineProgress, texts: Sequence[str]) -> Iterator[str]:
    """The translation of each sentence, in order, with the sentences before it as context."""
    follower = Follower(translator.context_sentences, "one" if request.documents == "blank" else request.documents)
    for first in range(0, len(texts), _CHUNK):
        chunk = texts[first : first + _CHUNK]
        requests = [Request(text, "", context) for text, context in zip(chunk, follower.take(chunk), strict=True)]
        batches = -(-len(chunk) // (translator.batch_sentences * translator.processes.count))
        watch = progress.watch(len(chunk), batches)
        for number, ranked in enumerate(translator.translate_chunk(requests, watch=watch, report=progress.say)):
            for note in ranked[0].notes:
                progress.say(f"warning: sentence {first + number + 1} {note}")
            yield ranked[0].text
        progress.add(len(chunk))
