"""Language codes: read from names and from users, and held against the script of the text.

The codes, names and scripts are those of the Unicode CLDR, in a table that `scripts/cldr_text.py` has generated.
"""

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.data.lines import read_lines
from nmt.system.errors import UserError
from nmt.text.scripts import language_by_script, script_of, script_of_language

#: The language codes of text whose languages nobody has named.
UNNAMED = ("source", "target")

#: Common names that the CLDR does not have, and "kr", which means Korean far more often than Kanuri.
_COMMON = {"kr": "ko", "mandarin": "zh", "farsi": "fa"}
#: Codes that the CLDR has no alias for: Norwegian, and those of LibreTranslate.
_OTHER_CODES = {"no": ["nb"], "pb": ["pt", "BR"], "zt": ["zh", "Hant"]}
#: Parts of file names that name no language, whatever the CLDR says.
ENDINGS = {"gz", "xz", "bz2", "txt", "tsv", "csv", "tab", "raw", "tok", "src", "trg", "tgt"}


@functools.cache
def _cldr() -> dict[str, Any]:
    """The table; "codes" are its codes, three-letter codes and English names in lower case, with the code of each."""
    (line,) = read_lines(Path(__file__).resolve().parent / "shipped" / "languages.json.xz")
    table: dict[str, Any] = json.loads(line)
    codes = [code for code in [*table["names"], *table["aliases"]] if re.fullmatch("[a-z]{2,3}", code)]
    by_name = {name.lower(): code for code, name in table["names"].items()}
    scripts = {code: script for script, codes in table["script"].items() for code in codes.split()}
    subtags = {*table["scripts"], *table["territories"].split()}
    return table | {"codes": by_name | {code: code for code in codes} | _COMMON, "script": scripts, "subtags": subtags}


def language_code(name: str) -> str | None:
    """The code that a name means; None if it means no language.

    A code is returned as it is, with its script or region ("zh-Hans"). English names ("german") and codes of countries
    that are no codes of languages ("cn", "jp") give the code of the language.
    """
    cldr = _cldr()
    match = re.fullmatch(r"([a-z]{2,3})[-_]([A-Za-z]{2,4})", name)
    if match is not None and match[1] in cldr["codes"] and {match[2].title(), match[2].upper()} & cldr["subtags"]:
        return name
    country = cldr["spoken"].get(name.upper()) if re.fullmatch("[a-z]{2}", name) else None
    code: str | None = cldr["codes"].get(name.lower(), country)
    return code


def canonical(code: str) -> tuple[str, str]:
    """The language of a code and its script, which codes of one language share: "eng", "en_US" -> ("en", "Latn").

    Unknown parts stay as they are; an unknown script is "".
    """
    parts = code.replace("-", "_").split("_")
    first, *rest = _OTHER_CODES.get(parts[0].lower(), parts[:1]) + parts[1:]
    language = str(_cldr()["aliases"].get(first.lower(), first.lower()))
    names = ("_".join([language, *(part.upper() for part in rest)]), language)
    likely = [_cldr()["script"][name] for name in names if name in _cldr()["script"]]
    return language, next((part.title() for part in rest if len(part) == 4), likely[0] if likely else "")


def script_name(code: str) -> str:
    """The script of a language as `script_of` names it; "" if it is not known."""
    return script_of_language(code) or str(_cldr()["scripts"].get(canonical(code)[1], ""))


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
    """What to tell the user if the script of source or target sentences does not fit the language, a line a side."""
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

    Empty for an unknown language.
    """
    language, script = canonical(code)
    names = ("_".join([language, *code.replace("-", "_").split("_")[1:]]), f"{language}_{script}", language)
    return next((str(_cldr()["dates"][name]) for name in names if name in _cldr()["dates"]), "")


def english_name(code: str) -> str:
    """The English name of a language code ("German"); the code itself if it has none."""
    names = _cldr()["names"]
    return str(names.get(code) or names.get(code.replace("-", "_").partition("_")[0].lower()) or code)
