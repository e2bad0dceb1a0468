"""What tests of documents share: translating bytes by a function, and trips of generated documents."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nmt.alignment.tag_projection import LinkedText
from nmt.documents.formats import read_document
from nmt.documents.sentences import SplitDocument


def linked(source: str, target: str) -> LinkedText:
    """A sentence and its translation, whose words are linked in their order."""
    ours, theirs = ([word.span() for word in re.finditer(r"\S+", text)] for text in (source, target))
    return LinkedText.of_words(source, target, ours, theirs, None)


def translate(path: Path, data: bytes, word: Callable[[str], str]) -> tuple[list[str], bytes]:
    """The sentences of a document with these bytes, and its bytes with each sentence as `word` makes it."""
    path.write_bytes(data)
    document = read_document(path, "de", "en")
    assert document.write([None] * len(document.segments)) == data
    split = SplitDocument(document, "de")
    written = document.write(split.joined(linked(sentence, word(sentence)) for sentence in split.sentences))
    return split.sentences, written


LETTERS = "abcdefghijklmnopqrstuvwxyzäöü"
_SWAP = str.maketrans(LETTERS + LETTERS.upper(), LETTERS.upper() + LETTERS)


def swapped(text: str) -> str:
    """A text with small letters for capitals and the other way round."""
    return text.translate(_SWAP)


def generated(make: Callable[[list[str], int], bytes], texts: Sequence[str]) -> Iterator[bytes]:
    """200 documents of some of these texts. `make` has their number, too, to choose among forms of a document."""
    generator = random.Random(1)
    for number in range(200):
        yield make(generator.choices(list(texts), k=generator.randint(1, 6)), number)


def round_trip(
    path: Path,
    make: Callable[[list[str], int], bytes],
    texts: Sequence[str],
    content: Callable[[bytes], str] = bytes.decode,
) -> None:
    """Check generated documents: nothing but the text changes, and a second trip leads back to the first.

    Args:
        path: for the documents.
        make, texts: see `generated`.
        content: what is compared of a document.
    """
    for data in generated(make, texts):
        seen, same = translate(path, data, str)
        assert same == data
        _, changed = translate(path, data, swapped)
        again, back = translate(path, changed, swapped)
        assert again == [swapped(text) for text in seen]
        assert content(back) == content(data)
        assert content(changed).lower() == content(data).lower()
