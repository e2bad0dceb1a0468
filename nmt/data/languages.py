"""Language codes: read from names and from users, and held against the script of the text.

Babel's list decides what is a code. Babel is loaded only if a name has to be read.
"""

import datetime
import functools
import re
from collections.abc import Mapping, Sequence

from nmt.errors import UserError
from nmt.text.scripts import language_by_script, script_of, script_of_language

#: The language codes of text whose languages nobody has named.
UNNAMED = ("source", "target")

#: Common names that Babel does not know, and "kr", which means Korean far more often than Kanuri.
_COMMON = {"kr": "ko", "mandarin": "zh", "farsi": "fa"}
#: Codes that Babel has no alias for: Norwegian, and those of LibreTranslate.
_OTHER_CODES = {"no": ["nb"], "pb": ["pt", "BR"], "zt": ["zh", "Hant"]}
#: Parts of file names that name no language, whatever Babel says.
ENDINGS = {"gz", "xz", "bz2", "txt", "tsv", "csv", "tab", "raw", "tok", "src", "trg", "tgt"}


@functools.cache
def _names() -> Mapping[str, str]:
    """Babel's codes, three-letter codes and English names, in lower case, with the code of each."""
    from babel import Locale
    from babel.core import get_global

    english = Locale("en").languages
    codes = {code: code for code in [*english, *get_global("language_aliases")] if re.fullmatch("[a-z]{2,3}", code)}
    return {name.lower(): code for code, name in english.items()} | codes | _COMMON


@functools.cache
def _subtags() -> frozenset[str]:
    """Babel's scripts and territories, such as "Hans" and "BR"."""
    from babel import Locale

    return frozenset([*Locale("en").scripts, *Locale("en").territories])


def language_code(name: str) -> str | None:
    """The code that a name means; None if it means no language.

    A code of Babel's is returned as it is, with its script or region ("zh-Hans"). English names ("german") and codes of
    countries that are no codes of languages ("cn", "jp") give the code of the language.
    """
    match = re.fullmatch(r"([a-z]{2,3})[-_]([A-Za-z]{2,4})", name)
    if match is not None and match[1] in _names() and {match[2].title(), match[2].upper()} & _subtags():
        return name
    if (code := _names().get(name.lower())) is not None:
        return code
    if re.fullmatch("[a-z]{2}", name):
        from babel.core import get_global

        likely = get_global("likely_subtags").get(f"und_{name.upper()}")
        return None if likely is None else str(likely).partition("_")[0]
    return None


def canonical(code: str) -> tuple[str, str]:
    """The language of a code and its script, which codes of one language share: "eng", "en_US" -> ("en", "Latn").

    Parts that Babel does not know stay as they are; a script that it does not know is "".
    """
    from babel.core import get_global

    aliases, likely = get_global("language_aliases"), get_global("likely_subtags")
    parts = code.replace("-", "_").split("_")
    first, *rest = _OTHER_CODES.get(parts[0].lower(), parts[:1]) + parts[1:]
    language = str(aliases.get(first.lower(), first.lower())).partition("_")[0]
    script = next((part.title() for part in rest if len(part) == 4), "")
    for name in ("_".join([language, *(part.upper() for part in rest)]), language):
        full = str(likely.get(name, "")).split("_")
        script = script or (full[1] if len(full) == 3 else "")
    return language, script


def script_name(code: str) -> str:
    """The script of a language as `script_of` names it; "" if it is not known."""
    from babel import Locale

    return script_of_language(code) or str(Locale("en").scripts.get(canonical(code)[1], ""))


def checked_languages(source: str | bool | None, target: str | bool | None) -> tuple[str, str]:
    """Both languages as a user names them, checked (UserError); YAML's reading of an unquoted `no` is put right."""
    names = []
    for key, name in (("source", "no" if source is False else source), ("target", "no" if target is False else target)):
        if name is None:
            raise UserError(f"data.{key}=LANGUAGE is missing, such as data.{key}=de.")
        if not isinstance(name, str) or not name.strip():
            raise UserError(f"data.{key}={name} must be a language code, such as data.{key}=de.")
        names.append(name)
    if names[0] == names[1]:
        raise UserError(f"data.source and data.target are both {names[0]!r}: name two languages.")
    return names[0], names[1]


def language_codes(names: tuple[str, str]) -> tuple[str, str]:
    """The codes that two names mean; names that mean no language, or both the same, stay as they are."""
    codes = tuple(name if name in UNNAMED else language_code(name) or name for name in names)
    return names if codes[0] == codes[1] else (codes[0], codes[1])


def doubts(languages: tuple[str, str], text: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """What to tell the user if the script of a text does not fit its language, a line a side.

    Args:
        languages: codes of source and target.
        text: source and target sentences.
    """
    messages = []
    for side, code, sentences in zip(("source", "target"), languages, text, strict=True):
        by_script = language_by_script(sentences, code)
        if by_script == code or (code in UNNAMED and side == "source"):
            continue
        message = f"The {side} text is in {script_of(sentences)} script"
        if code not in UNNAMED:
            message += f", which does not fit data.{side}={code}"
        if side == "source":
            messages.append(f"{message}. Are the two sides swapped? Override: data.source=CODE.")
        else:
            messages.append(
                f"{message}: BLEU treats it as {by_script}. Override: data.target=CODE, or later languages="
                "[SOURCE,TARGET] of nmt.evaluate."
            )
    return messages


def sample(code: str) -> str:
    """A text in a language that needs no corpus: a date with its words ("Mittwoch, 28. September 2011").

    Empty if Babel does not know the language.
    """
    from babel import Locale, UnknownLocaleError
    from babel.dates import format_date

    try:
        locale = Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return ""
    return " ".join(str(format_date(datetime.date(2011, 9, 28), "full", locale)).split())


def english_name(code: str) -> str:
    """The English name of a language code ("German"); the code itself if it has none."""
    from babel import Locale

    english = Locale("en").languages
    return str(english.get(code) or english.get(code.replace("-", "_").partition("_")[0].lower()) or code)
