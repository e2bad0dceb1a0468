"""Splits a text into sentences and the white space between them.

The punctuation marks are those of Unicode. After an abbreviation or a number, a doubtful sentence is not split: a model
translates two sentences at once better than half a sentence.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from nmt.text.scripts import base_language

#: Marks after which a sentence ends even without a space: Han, Devanagari, Arabic, Ethiopic, Khmer and Myanmar.
FULL_STOPS = "。！？｡।؟۔።។៕။"
#: Marks after which a sentence ends if a space follows.
_MARKS = f"{FULL_STOPS}.!?…‼⁇⁈⁉॥։．"
_OPENING = "\"'“”‘’„‚«»‹›([{「『（【《〈¿¡*_-–—"
_CLOSING = "\"'“”‘’«»‹›)]}」』）】》〉*_"
_TOKEN = re.compile(rf"\s+|(?:[^\s{FULL_STOPS}]|[{FULL_STOPS}](?=[{re.escape(_MARKS + _CLOSING)}]))*+[{FULL_STOPS}]?")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_MAY_END = re.compile(rf"[{re.escape(_MARKS)}]|{_LINE_BREAK.pattern}")

#: Languages whose ordinals have no full stop, so that "in room 12. He" is two sentences and "am 3. Mai" is one.
_PLAIN_ORDINALS = frozenset({"en", "fr", "es", "it", "pt", "nl", "ca", "gl", "ro"})
#: Abbreviations with vowels before names, and before numbers. Those without vowels ("Dr", "bzw") need no list.
_BEFORE_NAMES = re.compile("prof|gen|sen|rep|gov|capt|rev|hon|sra|dra|ing|dipl|usw|ca|evtl|inkl")
_BEFORE_NUMBERS = re.compile("no|art|abs|fig|vol|sec|op|cap|jan|feb|mar|apr|jun|jul|aug|sept?|oct|okt|nov|dec|dez")


def split_sentences(text: str, language: str = "", lines_only: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each sentence and the white space after it; concatenated, they give the text.

    Args:
        text: a text of any length; the time is linear. If it begins with white space, the first sentence is empty.
        language: language code, which decides whether a full stop after a number is an ordinal's; "" if unknown.
        lines_only: end sentences at line breaks only.
    """
    tokens = [token for token in _TOKEN.findall(text) if token]
    sentence: list[str] = []
    for at, token in enumerate(tokens):
        if token.isspace():
            following = tokens[at + 1] if at + 1 < len(tokens) else ""
            ends = not sentence or not following or _LINE_BREAK.search(token)
            if ends or (not lines_only and _ends(sentence, following, language)):
                yield "".join(sentence), token
                sentence = []
            else:
                sentence.append(token)
        else:
            if sentence and not lines_only and sentence[-1][-1] in FULL_STOPS:
                yield "".join(sentence), ""
                sentence = []
            sentence.append(token)
    if sentence:
        yield "".join(sentence), ""


def has_several(text: str, language: str = "") -> bool:
    """Whether a text has more than one sentence."""
    if _MAY_END.search(text.strip()[:-1]) is None:
        return False
    sentences = (sentence for sentence, _ in split_sentences(text, language) if sentence)
    return len(list(islice(sentences, 2))) > 1


def _ends(sentence: Sequence[str], following: str, language: str) -> bool:
    """Whether a sentence ends before `following`; before a lower-case word, only if it also begins in lower case."""
    core = sentence[-1].rstrip(_CLOSING)
    stem = core.rstrip(_MARKS)
    first = following.lstrip(_OPENING)[:1]
    if stem == core or not first.isalnum():
        return False
    if first.islower() and (core != sentence[-1] or not sentence[0].lstrip(_OPENING)[:1].islower()):
        return False
    alone = len(sentence) == 1
    return core[len(stem) :] != "." or not _abbreviated(stem.lstrip(_OPENING), first.isdigit(), language, alone)


def _abbreviated(word: str, before_number: bool, language: str, alone: bool) -> bool:
    """Whether a full stop belongs to the word before it: abbreviation, initial, ordinal, or number of a list item."""
    low = word.lower()
    if word.isdigit():
        return alone or (len(word) < 3 and base_language(language) not in _PLAIN_ORDINALS)
    if _BEFORE_NAMES.fullmatch(low) or (before_number and _BEFORE_NUMBERS.fullmatch(low)):
        return True
    if ("." in word or len(word) == 1) and all(
        len(part) < 3 and part.upper() != part.lower() for part in word.split(".")
    ):
        return True  # "p.m", "z.B", "J"
    vowels = any(letter in "aeiouy" for letter in low)
    return word.isascii() and word.isalpha() and not word.isupper() and not vowels
