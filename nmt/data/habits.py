"""What a line of a text is: one sentence or several, how long, and whether it is text at all.

A model that has only seen single sentences leaves out or makes up the rest of a paragraph. `habits` describes the
lines of a training text, and `LineWatch` counts the lines to translate that are unlike them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nmt.data.text_formats import format_of, is_markup
from nmt.text.sentence_split import has_several

#: Lines that tell the habits of a text, and shares of them that make something unusual.
_SAMPLE, _RARE = 20_000, 0.1
#: How much longer than all others a line may be.
_LONGER, _MORE = 1.5, 20
_TABS, _TAGS = "tabs: all columns are translated as one text", "tags or time codes, which are translated as text"


def habits(lines: Sequence[str], language: str) -> dict[str, float]:
    """What lines are like: the shares with several sentences and with markup, and the longest in characters."""
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
        """Watch the text called `name`; the facts of the run have the habits of its training text."""
        known, languages = facts.get("source_lines"), facts.get("languages") or [""]
        known = known if isinstance(known, Mapping) else {}
        numbers = {key: value for key, value in known.items() if type(value) in (int, float) and value >= 0}
        longest = float(numbers.get("longest", float("inf")))
        several = numbers.get("several", 1) < _RARE
        self.name, self._lines, self._filled = name, 0, 0
        self._markup = numbers.get("markup", 0) < _RARE
        #: What a line may have, what to do then with a file and with a text alone, and whether a line has it; the first
        #: that fits counts.
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
        self._tallies: dict[str, list[int]] = {}  # how many, and the first

    def unlike(self, text: str) -> str | None:
        """What is unlike the training text in a text that is translated alone, and what to do; None for nothing."""
        what = self._what(text)
        return None if what is None else f"{self.name} has {what}. {self._checks[what][1]}"

    def _what(self, line: str) -> str | None:
        return next((what for what, (*_, has) in self._checks.items() if has(line)), None)

    def add(self, lines: Sequence[str]) -> list[str]:
        """Look at the next lines; returns a warning if they begin a text of another format."""
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
        """What to say of the lines so far, and nothing of them again."""
        tallies, self._tallies = self._tallies, {}
        return [
            f"{self.name}: {count:,} line{'s have' if count > 1 else ' has'} {what} (line {first:,}"
            f"{' is the first' if count > 1 else ''}). {cure}"
            for what, (cure, *_) in self._checks.items()
            for count, first in [tallies.get(what, (0, 0))]
            if count and (what != _TABS or 2 * count >= self._filled)  # most lines of a table
        ]
