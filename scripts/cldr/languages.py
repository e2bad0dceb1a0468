"""The table of language codes, names, scripts and dates for `nmt.data.languages`."""

import datetime
import re
from typing import Any

from babel import Locale
from babel.core import get_global
from babel.dates import format_date
from babel.localedata import locale_identifiers

DAY = datetime.date(2011, 9, 28)


def table() -> dict[str, Any]:
    """The CLDR's English names, aliases, likely scripts, languages of countries, and a full date in each locale."""
    english, likely = Locale("en"), get_global("likely_subtags")
    aliases = {code: str(alias).partition("_")[0] for code, alias in get_global("language_aliases").items()}
    scripts = {
        key: parts[1]
        for key, full in likely.items()
        if re.fullmatch("[a-z]{2,3}(_[A-Z]{2})?", key) and len(parts := str(full).split("_")) == 3
    }
    dates = dict[str, str]()
    for code in sorted(locale_identifiers(), key=lambda code: code.count("_")):
        date = " ".join(str(format_date(DAY, "full", Locale.parse(code))).split())
        if dates.get(code.rpartition("_")[0]) != date:
            dates[code] = date
    return {
        "names": {code: str(name) for code, name in english.languages.items()},
        "scripts": {code: str(name) for code, name in english.scripts.items()},
        "territories": " ".join(sorted(english.territories)),
        "aliases": aliases,
        "script": {
            script: " ".join(sorted(code for code, each in scripts.items() if each == script))
            for script in sorted(set(scripts.values()))
        },
        "spoken": {
            key[4:]: str(full).partition("_")[0] for key, full in likely.items() if re.fullmatch("und_[A-Z]{2}", key)
        },
        "dates": dates,
    }
