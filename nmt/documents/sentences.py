"""Segments of a document as sentences for a translator, and their translations as segments again."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from nmt.documents.formats import Document
from nmt.documents.placement import Sentence, place
from nmt.documents.segments import Segment
from nmt.text.sentence_split import split_sentences

_APART = re.compile(r"([\t\n]+)")


def sentences_of(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Each sentence of a text with the white space after it; they add up to the text. Tabs and line breaks end it."""
    parts = _APART.split(text)
    for line, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        sentences = list(split_sentences(line, language)) or [("", "")]
        yield from sentences[:-1]
        yield sentences[-1][0], sentences[-1][1] + end


def translated(document: Document, language: str, translate: Callable[[Sequence[str]], Iterable[str]]) -> list[Segment]:
    """The segments of a document, translated sentence by sentence, with their tags.

    Args:
        document: that was read.
        language: of its sentences.
        translate: called once, with all sentences; gives as many translations.
    """
    split = [list(sentences_of(segment.text, language)) for segment in document.segments]
    sources = [" ".join(text.split()) for sentences in split for text, _ in sentences if text]
    results = zip(sources, translate(sources), strict=True)

    def sentence(text: str, space: str) -> Sentence:
        if not text:
            return Sentence("", "", space)
        source, target = next(results)
        return Sentence(text, text if target == source else target, space)

    return [
        place(segment, [sentence(*each) for each in sentences])
        for segment, sentences in zip(document.segments, split, strict=True)
    ]
