"""Segments of a document -> sentences for a translator, and their translations -> segments."""

import re
from collections.abc import Iterable, Iterator, Sequence

from nmt.alignment.tag_projection import LinkedText, project
from nmt.documents.document_slots import is_language
from nmt.documents.formats import Document
from nmt.text.sentence_split import FULL_STOPS, split_sentences
from nmt.text.tags import Segment

_APART = re.compile(r"([\t\n]+)")


def sentences_of(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence of a text and the white space after it. Tabs and line breaks end a sentence."""
    parts = _APART.split(text)
    for line, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        sentences = list(split_sentences(line, language)) or [("", "")]
        yield from sentences[:-1]
        yield sentences[-1][0], sentences[-1][1] + end


class SplitDocument:
    """A document that is split into sentences.

    Attributes:
        sentences: the sentences with words, in order.
        has_tags: for each sentence, whether its segment has tags.
    """

    def __init__(self, document: Document, language: str) -> None:
        """Split a document whose sentences are in `language`."""
        self._segments = [(segment, list(sentences_of(segment.text, language))) for segment in document.segments]
        of_segments = [(text, bool(segment.tags)) for segment, split in self._segments for text, _ in split]
        self.sentences = [text for text, _ in of_segments if is_language(text)]
        self.has_tags = [has_tags for text, has_tags in of_segments if is_language(text)]

    def joined(self, translations: Iterable[LinkedText]) -> list[Segment]:
        """Join the translations of all sentences to segments, with tags around the linked words."""
        results = iter(translations)
        return [_joined(segment, split, results) for segment, split in self._segments]


def _joined(segment: Segment, sentences: Sequence[tuple[str, str]], results: Iterator[LinkedText]) -> Segment:
    parts = list[LinkedText]()
    for number, (text, space) in enumerate(sentences):
        parts.append(next(results) if is_language(text) else LinkedText.same(text))
        if space:
            parts.append(LinkedText.same(space))
        elif text and number + 1 < len(sentences) and not parts[-1].target.endswith(tuple(FULL_STOPS)):
            # The source has no space here because of its script; the translation needs one.
            parts.append(LinkedText.same(" ")._replace(source="", sentences=[]))
    linked = LinkedText.join(parts)
    return segment if linked.target == segment.text else project(linked, segment.tags)
