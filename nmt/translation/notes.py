"""Notes on texts with more pieces than a model has learned positions for or can attend to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from nmt.model import Seq2Seq
from nmt.translation.types import Translation

_LIMITS = {
    "decoder.max_positions": "pieces that the model can attend to (attention.score.positions): the rest was ignored.",
    "encoder.learned_positions": "positions that the model has learned (encoder.positions.count): "
    "the pieces beyond share the last one.",
}
_TARGET = "decoder.learned_positions"


def limits_of(models: Sequence[Seq2Seq]) -> Mapping[str, int | None]:
    """The largest value of each limit over the models; None if a model has no such limit."""
    limits = {}
    for limit in (*_LIMITS, _TARGET):
        model_limits = [attrgetter(limit)(model) for model in models]
        limits[limit] = None if None in model_limits else max(model_limits)
    return limits


def excess_of_source(limits: Mapping[str, int | None], pieces: int, splits: bool = True) -> str:
    """A note if a line of `pieces` pieces and its end is too long for all models, with the fix if `splits`; else ""."""
    for limit, consequence in _LIMITS.items():
        most = limits[limit]
        if most is not None and most <= pieces:
            cure = f" To translate it in parts: max_source_length={most - 1} long_lines=split"
            return f"is longer than the {most} {consequence}{cure * (splits and most > 1)}"
    return ""


def excess_of_target(limits: Mapping[str, int | None], pieces: int) -> str:
    """A note if a translation has more pieces, including its end, than any model has positions for; else ""."""
    most = limits[_TARGET]
    if most is None or most >= pieces:
        return ""
    return (
        f"has a translation that is longer than the {most} positions that the model has learned "
        "(decoder.positions.count): the pieces beyond share the last one."
    )


def noted(joined: list[Translation], parts: list[list[Translation]], notes: Sequence[str]) -> list[Translation]:
    """The n-best list with notes on its sentence, including a note if the parts have too many weights to join."""
    if joined[0].weights is None and parts[0][0].weights is not None:
        notes = [*notes, "is too long for attention weights: it gets no word links and no picture."]
    unlike = tuple(dict.fromkeys(filter(None, notes)))
    return [joined[0]._replace(notes=unlike), *joined[1:]] if unlike else joined


class NoteCounter:
    """Notes on the lines of a text, grouped by their wording."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}

    def add(self, line: int, notes: Iterable[str]) -> None:
        """Add the notes on line number `line`; empty notes are ignored."""
        for note in filter(None, notes):
            self._lines.setdefault(note, set()).add(line)

    def best(self, nbest_lists: Iterable[list[Translation]]) -> Iterator[Translation]:
        """Yield the best translation of each line of a text, and add its notes."""
        for line, (best, *_) in enumerate(nbest_lists, 1):
            self.add(line, best.notes)
            yield best

    def messages(self, text: str, unit: str) -> list[str]:
        """A warning for each note, which names `text` and calls its lines `unit`."""
        return [
            f"warning: {text}, {unit} {min(lines)} {note}"
            if len(lines) == 1
            else f"warning: {text}: {len(lines):,} {unit}s are too long; {unit} {min(lines)}, the first, {note}"
            for note, lines in self._lines.items()
        ]
