"""Properties of the lines of a text: one sentence or several, length, and markup.

A model that has only seen single sentences omits or invents the rest of a paragraph. `habits` describes the lines of a
training text, and `LineWatch` counts the lines to translate that differ from them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nmt.data.text_formats import format_of, is_markup
from nmt.text.sentence_split import has_several

#: The most lines that are examined, and the share of lines below which a property is unusual.
_SAMPLE, _RARE = 20_000, 0.1
#: A line is too long if it exceeds the longest training line by this factor and so many characters.
_LONGER, _MORE = 1.5, 20
_TABS, _TAGS = "tabs: all columns are translated as one text", "tags or time codes, which are translated as text"


def habits(lines: Sequence[str], language: str) -> dict[str, float]:
    """The share of lines with several sentences, the share with markup, and the most characters of a line."""
    some = [line for line in lines[:: len(lines) // _SAMPLE + 1] if line.strip()]
    count = max(1, len(some))
    return {
        "several": round(sum(has_several(line, language) for line in some) / count, 4),
        "markup": round(sum(map(is_markup, some)) / count, 4),
        "longest": max(map(len, some), default=0),
    }


class LineWatch:
    """Counts lines to translate that are unlike the training text."""

    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        """Watch the text called `name`; the facts of a run contain the `habits` of its training text."""
        known, languages = facts.get("source_lines"), facts.get("languages") or [""]
        known = known if isinstance(known, Mapping) else {}
        numbers = {key: value for key, value in known.items() if type(value) in (int, float) and value >= 0}
        longest = float(numbers.get("longest", float("inf")))
        several = numbers.get("several", 1) < _RARE
        self.name, self._lines, self._filled = name, 0, 0
        self._markup = numbers.get("markup", 0) < _RARE
        #: Property -> advice for a file, advice for a single text, and the test of a line. A line counts for the first
        #: property that it has.
        self._checks: dict[str, tuple[str, str, Callable[[str], bool]]] = {
            _TAGS: (
                "Take the text out first, and put its translation back.",
                "Take the text out first.",
                lambda line: self._markup and is_markup(line),
            ),
            _TABS: ("Take one column: cut -f 1 FILE.", "Take one column.", lambda line: "\t" in line.strip()),
            "several sentences": (
                "Its translation may lack some: write one sentence per line.",
                "The translation may lack some: translate one at a time.",
                lambda line: several and has_several(line, str(languages[0])),
            ),
            f"more characters than any line of the training text ({longest:,.0f})": (
                "Such lines are translated badly: write one sentence per line.",
                "Texts of this length are translated badly: translate a part at a time.",
                lambda line: len(line) > _LONGER * longest + _MORE,
            ),
        }
        self._tallies: dict[str, list[int]] = {}  # property -> number of lines, and the first of them

    def unlike(self, text: str) -> str | None:
        """How a single text differs from the training text, with advice for the user; None if it does not."""
        what = self._what(text)
        return None if what is None else f"{self.name} has {what}. {self._checks[what][1]}"

    def _what(self, line: str) -> str | None:
        return next((what for what, (*_, has) in self._checks.items() if has(line)), None)

    def add(self, lines: Sequence[str]) -> list[str]:
        """Count the next lines; returns a warning if they are the beginning of a text in another format."""
        file_format = None if self._lines else format_of(lines)
        for line in lines:
            self._lines += 1
            self._filled += bool(line.strip())
            if (what := self._what(line)) is not None:
                self._tallies.setdefault(what, [0, self._lines])[0] += 1
        if file_format is None:
            return []
        self._markup = False
        self._tallies.pop(_TAGS, None)
        return [f"{self.name} looks like {file_format.name}. Every line is translated as text. {file_format.cure}"]

    def notes(self) -> list[str]:
        """Warnings about the lines since the last call."""
        tallies, self._tallies = self._tallies, {}
        return [
            f"{self.name}: {count:,} line{'s have' if count > 1 else ' has'} {what} (line {first:,}"
            f"{' is the first' if count > 1 else ''}). {cure}"
            for what, (cure, *_) in self._checks.items()
            for count, first in [tallies.get(what, (0, 0))]
            if count and (what != _TABS or 2 * count >= self._filled)  # a table has tabs in most lines
        ]
