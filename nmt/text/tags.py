"""Tags at positions of a plain text: markup that no model sees.

The reader of a file format makes segments. `nmt.alignment.tag_projection` finds the positions in a translation.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Tag(NamedTuple):
    """A pair of tags around the characters [start, end) of a text, or a lone tag.

    Attributes:
        start, end: span in characters. The span of a lone tag is empty, or one white space that the tag replaces.
        opening: the markup before the characters, or the lone tag.
        closing: the markup after the characters; "" for a lone tag.
        depth: number of pairs around the tag; -1 to derive it from the spans. Then an empty tag at the end of a pair,
            which may be inside or outside, counts as outside.
    """

    start: int
    end: int
    opening: str
    closing: str = ""
    depth: int = -1


def nested(tags: Sequence[Tag]) -> Iterator[Tag]:
    """Yield the tags, each with its depth."""
    around: list[Tag] = []
    for tag in tags:
        if tag.depth < 0:
            while around and not (tag.start < around[-1].end or tag.start == tag.end == around[-1].start):
                around.pop()
        else:
            del around[tag.depth :]
        yield tag._replace(depth=len(around))
        if tag.closing:
            around.append(tag)


class Segment(NamedTuple):
    """A plain text that is translated as a whole, with its tags in the order in which they open."""

    text: str
    tags: Sequence[Tag] = ()

    def render(self, escape: Callable[[str], str] = str) -> str:
        """The text with its tags; `escape` escapes plain text for the format."""
        parts: list[str] = []
        around: list[Tag] = []
        position = 0

        def write_to(end: int) -> None:
            nonlocal position
            parts.append(escape(self.text[position:end]))
            position = max(position, end)

        def close(depth: int) -> None:
            while len(around) > depth:
                tag = around.pop()
                write_to(tag.end)
                parts.append(tag.closing)

        for tag in nested(self.tags):
            close(tag.depth)
            write_to(tag.start)
            parts.append(tag.opening)
            if tag.closing:
                around.append(tag)
            else:
                position = max(position, tag.end)
        close(0)
        write_to(len(self.text))
        return "".join(parts)
