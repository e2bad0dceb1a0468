"""The script in which a text is written, and whether it has spaces between words.

Used to count words or characters, to decide on separate vocabularies, and to choose BLEU's tokenizer.
"""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import fontTools.unicodedata  # type: ignore[import-untyped]

#: Scripts without spaces between words, and Hangul, with their language codes, the usual code first.
LANGUAGES = {
    "Han": ("zh", "zho", "chi", "cmn", "yue", "wuu", "nan", "hak", "gan", "hsn", "lzh"),
    "Japanese": ("ja", "jpn"),
    "Hangul": ("ko", "kor"),
    "Thai": ("th", "tha"),
    "Lao": ("lo", "lao"),
    "Khmer": ("km", "khm"),
    "Myanmar": ("my", "mya", "bur"),
    "Tibetan": ("bo", "bod", "tib", "dz", "dzo"),
}
_SCRIPT_OF_LANGUAGE = {code: script for script, codes in LANGUAGES.items() for code in codes}

#: Lines of a long text that `script_of` samples.
_SAMPLE = 20_000
#: Share of letters that decides for a script without spaces: names in Latin letters have more letters than Han words.
_DECISIVE = 0.25
#: Share of letters that confirms the script of a language.
_CONFIRMING = 0.1
#: Share of kana among kana and Han characters that distinguishes Japanese from Chinese.
_KANA = 0.05
#: Characters of an average word.
_WORD_LENGTHS, _WORD_LENGTH = {"Han": 1.7, "Japanese": 2.2}, 4.5


def base_language(language: str) -> str:
    """The language of a code with or without script and region: "zh_Hans_CN" -> "zh"."""
    return language.replace("-", "_").split("_")[0].lower()


def script_of_language(language: str) -> str:
    """The script of a language in `LANGUAGES`; "" for any other language."""
    return _SCRIPT_OF_LANGUAGE.get(base_language(language), "")


@functools.cache
def script(letter: str) -> str:
    """The Unicode script of a character: "Latin", "Han", "Hiragana" ...; "" for characters of several scripts."""
    code = fontTools.unicodedata.script(letter)
    return "" if code in ("Zyyy", "Zinh", "Zzzz") else str(fontTools.unicodedata.script_name(code))


def _script_of_letter(character: str) -> str:
    """The script of a letter as in `script`, but "Kana" for both kinds of kana; "" for other characters."""
    name = script(character) if character.isalpha() else ""
    return "Kana" if name in ("Hiragana", "Katakana") else name


def _count_scripts(lines: Sequence[str]) -> Counter[str]:
    """Count the letters of each script in a sample of lines; with enough kana, Han characters count as Japanese."""
    characters: Counter[str] = Counter()
    for line in lines[:: len(lines) // _SAMPLE + 1]:
        characters.update(line)
    counts: Counter[str] = Counter()
    for character, count in characters.items():
        counts[_script_of_letter(character)] += count
    del counts[""]
    kana, han = counts.pop("Kana", 0), counts["Han"]
    if kana > _KANA * (kana + han):
        counts["Japanese"] = kana + counts.pop("Han", 0)
    return counts


def script_of(lines: Sequence[str], language: str = "") -> str:
    """Determine the script of a text: one of `LANGUAGES`, "Latin", "Cyrillic" ...; "" for a text without letters.

    Args:
        lines: the lines of the text; a long text is sampled.
        language: code of the supposed language. Fewer letters are needed to confirm its script than for another script.
            Japanese may consist of Han characters.
    """
    counts = _count_scripts(lines)
    letters = counts.total()
    expected = script_of_language(language)
    if expected == "Japanese" and not counts["Japanese"]:
        counts["Japanese"] = counts.pop("Han", 0)
    special: Mapping[str, int] = {script: counts[script] for script in LANGUAGES}
    script = max(special, key=special.__getitem__)
    if special[script] > _DECISIVE * letters:
        return script
    if expected and special[expected] > _CONFIRMING * letters:
        return expected
    return max(counts, key=counts.__getitem__, default="") if letters else ""


def language_by_script(lines: Sequence[str], language: str) -> str:
    """The code `language` if it agrees with the script of the text, otherwise a code that agrees.

    The code is "und" (undetermined) if `language` is written without spaces and the text is in a script with spaces.
    """
    script, expected = script_of(lines, language), script_of_language(language)
    if not script or script == expected or (script not in LANGUAGES and not expected):
        return language
    return LANGUAGES[script][0] if script in LANGUAGES else "und"


def unspaced(text: str) -> bool:
    """Whether a text has no spaces between words, so that splitting at white space would give sentences.

    True if most letters belong to such a script and the parts between spaces are long: segmented Chinese (as in
    "\u6211 \u7231 \u4f60") has words like any other text.
    """
    scripts = [script for script in map(_script_of_letter, text) if script]
    letters = sum(script == "Kana" or (script in LANGUAGES and script != "Hangul") for script in scripts)
    words = len(text.split())
    return letters > len(scripts) / 2 and (words == 1 or letters > 4 * words)


class Lengths(NamedTuple):
    """Lengths of some lines.

    Attributes:
        counts: words of each line, or characters that are not white space.
        unit: "words" or "characters".
        per_word: units that make about one word: 1 for words.
    """

    counts: list[int]
    unit: str
    per_word: float


def lengths(lines: Sequence[str]) -> Lengths:
    """Count the words of each line, or its characters if the text puts no spaces between words."""
    words = [len(line.split()) for line in lines]
    script = script_of(lines)
    if script in LANGUAGES and script != "Hangul":
        characters = [sum(not character.isspace() for character in line) for line in lines]
        per_word = _WORD_LENGTHS.get(script, _WORD_LENGTH)
        # Segmented text has words like any other text.
        if sum(characters) > 2 * per_word * sum(words):
            return Lengths(characters, "characters", per_word)
    return Lengths(words, "words", 1.0)
