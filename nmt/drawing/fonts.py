"""Fonts for text in any script, without matplotlib's warnings.

DejaVu Sans comes with matplotlib (Latin, Greek, Cyrillic, Arabic, Hebrew, ...). Other scripts use an installed font. A
character without a font is drawn as an empty box, and a note names its script and the package to install.
matplotlib's global state does not change, except that newly installed fonts are added to its list.
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

# From matplotlib 3.11 on, libraqm shapes and reorders text. Reordering here as well would reverse it again.
_SHAPES_ITSELF = hasattr(ft2font, "__libraqm_version__")

# These fonts are tried in this order before all others, so that Han, kana and Hangul have the same design.
_PREFERRED = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Noto Sans CJK JP", "Noto Sans JP"),
    *("Noto Sans CJK KR", "Noto Sans KR", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Hiragino Sans GB", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Arial Unicode MS"),
)
# Han characters have national shapes: for text in these scripts, prefer fonts with these names.
_NATIONAL = (("Hira", ("JP", "Hiragino Sans", "Yu Gothic")), ("Hang", ("KR", "Apple SD", "Malgun")))

_CJK = {"Hani", "Hira", "Kana", "Hang", "Bopo"}
_SIGNS = {"Zyyy", "Zinh", "Zzzz"}


def properties(families: Iterable[str], size: float) -> FontProperties:
    """A font with all properties set, so that a matplotlibrc has no effect."""
    return FontProperties(
        family=list(families), style="normal", variant="normal", weight=400, stretch="normal", size=size
    )


def clean(text: str) -> str:
    """Replace control characters by middle dots, and remove invisible characters."""
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
    """Whether `text` has a letter of a right-to-left script."""
    return any(scripts.script_horizontal_direction(scripts.script(char)) == "RTL" for char in text)


def shape(text: str) -> str:
    """Prepare a line of text for matplotlib: join Arabic letters, and put right-to-left text in visual order."""
    if _SHAPES_ITSELF or not right_to_left(text):
        return text
    return str(get_display(arabic_reshaper.reshape(text)))


@functools.lru_cache(maxsize=512)
def _coverage(family: str) -> frozenset[int]:
    """The code points of a font family, in the face that matplotlib selects for `properties`."""
    if family not in _names():
        return frozenset()  # not installed
    path = font_manager.findfont(properties([family], 10), fallback_to_default=False)
    try:
        font = font_manager.get_font(path)
        # Bitmap fonts (colour emoji) cannot be scaled.
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):  # damaged, or removed since matplotlib made its list
        return frozenset()


def _names() -> list[str]:
    """The font families with a regular upright face; for others, matplotlib logs a warning."""
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
    """The ISO 15924 script code of a character ("Hani", "Hang", "Thai"); "Zyyy" for signs used in many scripts."""
    width, code = unicodedata.east_asian_width(char), str(scripts.script(char))
    if width == "F" or (width == "W" and unicodedata.category(char)[0] == "P"):
        return "Hani"  # the punctuation of Chinese and Japanese
    return "Zyyy" if code in _SIGNS else code


def families_for(text: str) -> tuple[list[str], list[str]]:
    """Choose the fonts for all text of one picture.

    Args:
        text: all text, after `clean` and `shape`.

    Returns:
        The font families, in the order in which they are tried for each character, and the characters without an
        installed font.
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
    """Replace every missing character of `text` by an empty box."""
    return text.translate(dict.fromkeys(map(ord, missing), BOX)) if missing else text


def drawable(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Prepare texts in any script for drawing; return the texts and their font families."""
    cleaned = [clean(text) for text in texts]
    families, missing = families_for("".join(map(shape, cleaned)))
    return [shape(without(text, missing)) for text in cleaned], families


def missing_note(missing: Iterable[str]) -> str | None:
    """A note with the scripts of missing characters and the package to install; None without missing characters."""
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
