r"""Canonical text: one form for text that looks the same, without invisible characters.

A tokenizer reads `canonical` text if its model is marked (`tokenizer.canonical`). Patterns are regular expressions
that match one character, written in ASCII, since the programs of `nmt.export` use them too.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from nmt.text.spans import Span

#: Invisible characters that control layout: soft hyphen, grapheme joiner, zero width space, word joiner, byte order
#: mark, marks of direction, invisible operators. ZWJ, ZWNJ and variation selectors change what is visible: not listed.
UNSEEN = r"[\u00ad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
#: A visible character: no white space, control, default-ignorable character or blank of Braille.
SHOWN = (
    r"[^\s\0-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: The most characters that are normalised at once: the time grows with the square of the length of a run of marks.
_MOST = 500

_unseen, _visible_character = re.compile(UNSEEN), re.compile(SHOWN)


def shows_nothing(text: str) -> bool:
    """Whether a text has no visible character."""
    return _visible_character.search(text) is None


def any_text(source: Iterable[str], target: Iterable[str]) -> bool:
    """Whether any pair has visible text on both sides."""
    return not all(shows_nothing(a) or shows_nothing(b) for a, b in zip(source, target, strict=True))


def canonical(text: str) -> str:
    """The text in normalisation form C without `UNSEEN`: canonically equivalent texts become equal."""
    if text.isascii():
        return text
    text = _unseen.sub("", text)
    if len(text) <= _MOST:
        return _nfc(text)
    words = re.findall(" ?[^ ]+| ", text)
    return "".join(_nfc(word) if len(word) <= _MOST else "".join(part for _, part in _clusters(word)) for word in words)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Divide a text into parts whose normalisation is independent; yield the end of each part and its form C."""
    begin, composed = 0, ""
    for at, character in enumerate(text):
        # A mark belongs to the letter before it, and so does a character that composes with it, as in Hangul.
        if at > begin and at - begin < _MOST:
            if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
                composed = ""
                continue
            composed = composed or _nfc(text[begin:at])
            if _nfc(text[begin : at + 1]) != composed + _nfc(character):
                composed = ""
                continue
        if at > begin:
            yield at, composed or _nfc(text[begin:at])
        begin, composed = at, ""
    if text:
        yield len(text), _nfc(text[begin:])


def in_original(spans: Sequence[Span | None], text: str) -> list[Span | None]:
    """Spans of `canonical(text)` as spans of `text`; characters that are composed to one have one span."""
    places = [at for at, character in enumerate(text) if not _unseen.match(character)]
    begins, ends = list[int](), list[int]()
    first = 0
    for end, composed in _clusters("".join(text[at] for at in places)):
        begins += [places[first]] * len(composed)
        ends += [places[end - 1] + 1] * len(composed)
        first = end
    begins.append(len(text))

    def original(begin: int, end: int) -> Span:
        place, stop = begins[begin], ends[end - 1] if end > begin else begins[begin]
        while place < stop and text[place].isspace():  # the span of a space with a mark is the mark
            place += 1
        return place, stop

    return [None if span is None else original(*span) for span in spans]
