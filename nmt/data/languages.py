"""Language codes: derived from file names and settings, and compared with the script of the text.

The codes, names and scripts come from the Unicode CLDR, in a table that `scripts/cldr_text.py` generates.
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

#: Placeholders for the codes of languages that the user has not named.
UNNAMED = ("source", "target")

#: Common names that the CLDR does not have, and "kr", which means Korean far more often than Kanuri.
_COMMON = {"kr": "ko", "mandarin": "zh", "farsi": "fa"}
#: Codes without an alias in the CLDR: Norwegian, and codes of LibreTranslate.
_OTHER_CODES = {"no": ["nb"], "pb": ["pt", "BR"], "zt": ["zh", "Hant"]}
#: Parts of file names that do not mean a language, even if the CLDR has them as codes.
ENDINGS = {"gz", "xz", "bz2", "txt", "tsv", "csv", "tab", "raw", "tok", "src", "trg", "tgt"}


@functools.cache
def _cldr() -> dict[str, Any]:
    """The CLDR table; "codes" maps lower-case English names to codes, and codes and their aliases to themselves."""
    (line,) = read_lines(Path(__file__).resolve().parent / "shipped" / "languages.json.xz")
    table: dict[str, Any] = json.loads(line)
    codes = [code for code in [*table["names"], *table["aliases"]] if re.fullmatch("[a-z]{2,3}", code)]
    by_name = {name.lower(): code for code, name in table["names"].items()}
    scripts = {code: script for script, codes in table["script"].items() for code in codes.split()}
    subtags = {*table["scripts"], *table["territories"].split()}
    return table | {"codes": by_name | {code: code for code in codes} | _COMMON, "script": scripts, "subtags": subtags}


def language_code(name: str) -> str | None:
    """The language code for a name; None if the name refers to no language.

    A code is returned with its script or region ("zh-Hans"). English names ("german") and country codes that are not
    language codes ("cn", "jp") give the code of the language.
    """
    cldr = _cldr()
    match = re.fullmatch(r"([a-z]{2,3})[-_]([A-Za-z]{2,4})", name)
    if match is not None and match[1] in cldr["codes"] and {match[2].title(), match[2].upper()} & cldr["subtags"]:
        return name
    country = cldr["spoken"].get(name.upper()) if re.fullmatch("[a-z]{2}", name) else None
    code: str | None = cldr["codes"].get(name.lower(), country)
    return code


def canonical(code: str) -> tuple[str, str]:
    """The language and the script of a code, so that codes of one language compare equal: "eng" -> ("en", "Latn").

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
    """Return both languages as the user names them, checked (UserError); False, YAML's `no`, becomes "no"."""
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
    """The codes of two names; a name of no language stays unchanged, and so do two names of the same language."""
    codes = tuple(name if name in UNNAMED else language_code(name) or name for name in names)
    return names if codes[0] == codes[1] else (codes[0], codes[1])


def doubts(languages: tuple[str, str], text: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """Messages for the user, at most one per side, if the script of the text does not fit the language."""
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
    """A sample text in a language: a date in words ("Mittwoch, 28. September 2011"); "" for an unknown language."""
    language, script = canonical(code)
    names = ("_".join([language, *code.replace("-", "_").split("_")[1:]]), f"{language}_{script}", language)
    return next((str(_cldr()["dates"][name]) for name in names if name in _cldr()["dates"]), "")


def english_name(code: str) -> str:
    """The English name of a language code ("German"); the code itself if it has none."""
    names = _cldr()["names"]
    return str(names.get(code) or names.get(code.replace("-", "_").partition("_")[0].lower()) or code)
