"""Where pieces stand in their text: [begin, end) of characters. What there is to know of a piece outside this room."""

from collections.abc import Sequence

Span = tuple[int, int]


def words_of(text: str, spans: Sequence[Span | None]) -> list[int]:
    """For each span the index in `text.split()` of the word of its first character, -1 for none.

    An empty span belongs to the word that begins right after it, if one does; None to no word.
    """
    word_of: list[int] = []
    word, inside = -1, False
    for character in text:
        visible = not character.isspace()
        word += visible and not inside
        inside = visible
        word_of.append(word if visible else -1)
    word_of.append(-1)  # what is empty at the end
    return [-1 if span is None else word_of[span[0]] for span in spans]
