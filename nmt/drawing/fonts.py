"""Fonts for text in any script, without matplotlib's warnings.

DejaVu Sans comes with matplotlib (Latin, Greek, Cyrillic, Arabic, Hebrew, ...). For other scripts, an installed font is
used. A character that no font has is drawn as an empty box, and a note names its script and the package to install.
matplotlib's global state is not changed, except that newly installed fonts are added to its list.
"""

import functools
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import arabic_reshaper  # type: ignore[import-untyped]
from bidi import get_display  # type: ignore[import-untyped]
from fontTools import unicodedata as scripts  # type: ignore[import-untyped]
from matplotlib import font_manager, ft2font
from matplotlib.font_manager import FontProperties

BOX = "\u25a1"
BASE = "DejaVu Sans"

# From matplotlib 3.11 on, libraqm shapes and reorders text. Doing it twice would undo it.
_SHAPES_ITSELF = hasattr(ft2font, "__libraqm_version__")

# Tried in this order before all other fonts, so that Han, kana and Hangul have one design.
_PREFERRED = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Noto Sans CJK JP", "Noto Sans JP"),
    *("Noto Sans CJK KR", "Noto Sans KR", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Hiragino Sans GB", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Arial Unicode MS"),
)
# Han characters have national shapes: the fonts to prefer for text that contains these letters.
_NATIONAL = (("Hira", ("JP", "Hiragino Sans", "Yu Gothic")), ("Hang", ("KR", "Apple SD", "Malgun")))

_CJK = {"Hani", "Hira", "Kana", "Hang", "Bopo"}
_SIGNS = {"Zyyy", "Zinh", "Zzzz"}


def properties(families: Iterable[str], size: float) -> FontProperties:
    """A font with all traits set, so that a matplotlibrc has no effect."""
    return FontProperties(
        family=list(families), style="normal", variant="normal", weight=400, stretch="normal", size=size
    )


def clean(text: str) -> str:
    """`text` with control characters as middle dots, and without invisible characters."""
    chars = []
    for char in text:
        kind = unicodedata.category(char)
        if kind in ("Cc", "Zl", "Zp", "Cs", "Cn", "Co"):
            chars.append("·")
        elif kind == "Zs":
            chars.append(" ")
        # Joiners shape the letters around them. Other invisible characters and emoji variants have no effect.
        elif (kind != "Cf" or char in "\u200c\u200d") and not 0xFE00 <= ord(char) <= 0xFE0F:
            chars.append(char)
    return "".join(chars)


def right_to_left(text: str) -> bool:
    """Whether a letter of `text` is of a script that is written from right to left."""
    return any(scripts.script_horizontal_direction(scripts.script(char)) == "RTL" for char in text)


def shape(text: str) -> str:
    """One line of `text` for matplotlib: Arabic letters joined, right-to-left text in visual order."""
    if _SHAPES_ITSELF or not right_to_left(text):
        return text
    return str(get_display(arabic_reshaper.reshape(text)))


@functools.lru_cache(maxsize=512)
def _coverage(family: str) -> frozenset[int]:
    """The code points of a family, in the face that matplotlib selects for `properties`."""
    if family not in _names():
        return frozenset()  # not installed
    path = font_manager.findfont(properties([family], 10), fallback_to_default=False)
    try:
        font = font_manager.get_font(path)
        # Fonts of pixels (colour emoji) cannot be scaled.
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):  # damaged, or removed since matplotlib made its list
        return frozenset()


def _names() -> list[str]:
    """The families that have a regular upright face; for others matplotlib logs a warning."""
    plain = (
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.weight == 400 and entry.style == "normal" and entry.stretch == "normal"
    )
    # Last Resort "draws" every character as the name of its script.
    return sorted({entry.name for entry in plain if not entry.name.startswith("Last Resort")})


@functools.lru_cache(maxsize=1)
def _add_new_fonts() -> None:
    """Add fonts that were installed after matplotlib wrote its list of fonts."""
    known = {Path(entry.fname).resolve() for entry in font_manager.fontManager.ttflist}
    for path in sorted(font_manager.findSystemFonts()):
        if Path(path).resolve() not in known:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError, KeyError):  # damaged, or an unsupported format
                continue
    _coverage.cache_clear()


def _script(char: str) -> str:
    """The script of a character as ISO 15924 names it ("Hani", "Hang", "Thai"); "Zyyy" for signs of any script."""
    width, code = unicodedata.east_asian_width(char), str(scripts.script(char))
    if width == "F" or (width == "W" and unicodedata.category(char)[0] == "P"):
        return "Hani"  # the punctuation of Chinese and Japanese
    return "Zyyy" if code in _SIGNS else code


def families_for(text: str) -> tuple[list[str], list[str]]:
    """Choose the fonts for all text of one picture.

    Args:
        text: all text, after `clean` and `shape`.

    Returns:
        The font families, in the order in which they are tried for each letter, and the characters that no installed
        font has.
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
        codes = {_script(char) for char in missing}
        first = next((marks for code, marks in _NATIONAL if code in codes), ())
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


def drawable(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Texts in any script as a picture shows them, and the families of fonts that draw them."""
    cleaned = [clean(text) for text in texts]
    families, missing = families_for("".join(map(shape, cleaned)))
    return [shape(without(text, missing)) for text in cleaned], families


def missing_note(missing: Iterable[str]) -> str | None:
    """A note with the scripts that cannot be drawn and the package to install; None if there are none."""
    codes = {_script(char) for char in missing}
    if not codes:
        return None
    packages = {
        "fonts-noto-cjk" if code in _CJK else "fonts-symbola" if code == "Zyyy" else "fonts-noto-core" for code in codes
    }
    special = {"Hani": "Chinese characters", "Zyyy": "some symbols"}
    names = ", ".join(special.get(code, scripts.script_name(code)) for code in sorted(codes))
    return (
        f"No installed font has {names}, which are drawn as empty boxes. Install a font, on Debian and Ubuntu: "
        f"apt install {' '.join(sorted(packages))}"
    )
