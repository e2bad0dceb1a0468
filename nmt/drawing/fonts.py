"""Text as matplotlib can draw it: any script, with whichever fonts the machine has, and never a warning.

Serves the pictures of this room. DejaVu Sans comes with matplotlib (Latin, Greek, Cyrillic, Arabic, Hebrew,
...); for other scripts an installed font is looked for. What no font can draw is drawn as an empty box and
reported by the name of its script with the package to install. Nothing of matplotlib's global state is set;
fonts installed since matplotlib made its list are added to that list.
"""

import functools
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import arabic_reshaper  # type: ignore[import-untyped]
from bidi import get_display  # type: ignore[import-untyped]
from matplotlib import font_manager, ft2font
from matplotlib.font_manager import FontProperties

BOX = "\u25a1"
BASE = "DejaVu Sans"

# From matplotlib 3.11 on, libraqm shapes and orders text itself; doing it twice would undo it.
_SHAPES_ITSELF = hasattr(ft2font, "__libraqm_version__")

# Tried in this order before every other font, so that Han, kana and Hangul come from one design.
_PREFERRED = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Hiragino Sans GB",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Arial Unicode MS",
)
# The same signs have national shapes: which of the above come first for a text with these letters in it.
_NATIONAL = (("HIRAGANA", ("JP", "Hiragino Sans", "Yu Gothic")), ("HANGUL", ("KR", "Apple SD", "Malgun")))

_CJK = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"}


def properties(families: Iterable[str], size: float) -> FontProperties:
    """The font of every text in a picture: every trait given, whatever a matplotlibrc says."""
    return FontProperties(
        family=list(families), style="normal", variant="normal", weight=400, stretch="normal", size=size
    )


def clean(text: str) -> str:
    """`text` without what has no shape of its own: control signs become a middle dot, invisible ones go."""
    shown = []
    for char in text:
        kind = unicodedata.category(char)
        if kind in ("Cc", "Zl", "Zp", "Cs", "Cn", "Co"):
            shown.append("·")
        elif kind == "Zs":
            shown.append(" ")
        # Joiners shape the letters around them; other invisible signs and emoji variants do nothing here.
        elif (kind != "Cf" or char in "\u200c\u200d") and not 0xFE00 <= ord(char) <= 0xFE0F:
            shown.append(char)
    return "".join(shown)


def shape(text: str) -> str:
    """One line of `text` for matplotlib: Arabic letters joined, right-to-left text as the eye meets it."""
    if _SHAPES_ITSELF or not any(unicodedata.bidirectional(char) in ("R", "AL") for char in text):
        return text
    return str(get_display(arabic_reshaper.reshape(text)))


@functools.lru_cache(maxsize=512)
def _coverage(family: str) -> frozenset[int]:
    """The code points that a family draws in the face that matplotlib will choose for `properties`."""
    if family not in _names():
        return frozenset()  # not installed
    path = font_manager.findfont(properties([family], 10), fallback_to_default=False)
    try:
        font = font_manager.get_font(path)
        # Fonts of pixels (colour emoji) cannot be scaled.
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):  # damaged, or gone since matplotlib made its list
        return frozenset()


def _names() -> list[str]:
    """The families that have a plain upright face: for others matplotlib logs that it makes do."""
    plain = (
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.weight == 400 and entry.style == "normal" and entry.stretch == "normal"
    )
    # Last Resort "draws" every character as the name of its script.
    return sorted({entry.name for entry in plain if not entry.name.startswith("Last Resort")})


@functools.lru_cache(maxsize=1)
def _add_new_fonts() -> None:
    """Add fonts installed after matplotlib wrote its list of fonts, which it never looks at again."""
    known = {Path(entry.fname).resolve() for entry in font_manager.fontManager.ttflist}
    for path in sorted(font_manager.findSystemFonts()):
        if Path(path).resolve() not in known:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError, KeyError):  # damaged, or of a kind it does not read
                continue
    _coverage.cache_clear()


def _script(char: str) -> str:
    """The script of a letter by its Unicode name ("CJK", "HANGUL", "THAI"); "SIGNS" where it is no letter."""
    if 0x3000 <= ord(char) <= 0x303F or 0xFF00 <= ord(char) <= 0xFF65:  # the punctuation of Chinese and Japanese
        return "CJK"
    if unicodedata.category(char)[0] not in "LMN":
        return "SIGNS"
    return unicodedata.name(char, "SIGNS").split()[0].split("-")[0]


def families_for(text: str) -> tuple[list[str], list[str]]:
    """Choose the fonts for everything that will be written in one picture.

    Args:
        text: all of it, after `clean` and `shape`.

    Returns:
        The font families, in the order in which each letter looks for its shape, and the characters that no
        installed font can draw.
    """
    missing = {char for char in text if ord(char) > 32} - {"\u200c", "\u200d"}
    families: list[str] = []

    def take(names: Iterable[str]) -> None:
        for name in names:
            drawable = {char for char in missing if ord(char) in _coverage(name)}
            if drawable:
                families.append(name)
                missing.difference_update(drawable)

    def preferred() -> list[str]:
        scripts = {_script(char) for char in missing}
        first = next((marks for script, marks in _NATIONAL if script in scripts), ())
        return sorted(_PREFERRED, key=lambda name: not any(mark in name for mark in first))

    take([BASE])
    if missing:
        take([*preferred(), *_names()])
    if missing:
        _add_new_fonts()
        take([*preferred(), *_names()])
    return [BASE, *(name for name in families if name != BASE)], sorted(missing)


def without(text: str, missing: Iterable[str]) -> str:
    """`text` with an empty box for every character that cannot be drawn."""
    return text.translate(dict.fromkeys(map(ord, missing), BOX)) if missing else text


def missing_note(missing: Iterable[str]) -> str | None:
    """Name the scripts that cannot be drawn and the font to install; None where all is well."""
    scripts = {_script(char) for char in missing}
    if not scripts:
        return None
    packages = {
        "fonts-noto-cjk" if script in _CJK else "fonts-symbola" if script == "SIGNS" else "fonts-noto-core"
        for script in scripts
    }
    special = {"CJK": "Chinese characters", "SIGNS": "some signs"}
    names = ", ".join(special.get(script, script.title()) for script in sorted(scripts))
    return (
        f"No installed font draws {names}: empty boxes stand for them. Install a font that does, "
        f"on Debian and Ubuntu: apt install {' '.join(sorted(packages))}"
    )
