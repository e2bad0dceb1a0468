"""The one door to TensorBoard: curves, sample translations and attention pictures."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.errors import UserError
from nmt.translation.types import Translation


class Board:
    """Writes events under `folder`, or nothing where it is off. UserError where they cannot be written."""

    def __init__(self, folder: Path, on: bool, first_step: int = 0) -> None:
        """What earlier events say of steps after `first_step`, where this sitting begins, is hidden."""
        self._writer = None
        self._folder = folder
        if on:
            from torch.utils.tensorboard import SummaryWriter

            _silence_writers()
            with self._said():
                self._writer = SummaryWriter(str(folder), purge_step=first_step + 1 if first_step else None)

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """One point of each curve."""
        if self._writer is None:
            return
        with self._said():
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def samples(self, step: int, translations: Sequence[Translation]) -> None:
        """Sentences with their translations, and what each looked at."""
        if self._writer is None:
            return
        from nmt.drawing.heatmap import figure, pixels

        with self._said():
            for number, translation in enumerate(translations):
                text = f"{translation.source}\n\n> {translation.text}"
                self._writer.add_text(f"samples/{number}", text, step)
                if translation.weights is not None:
                    picture = pixels(figure(translation))
                    self._writer.add_image(f"attention/{number}", picture, step, dataformats="HWC")

    def close(self) -> None:
        """Ends the events file."""
        if self._writer is not None:
            with contextlib.suppress(OSError):  # what could not be written has been said
                self._writer.close()

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"Cannot write the curves in {self._folder}: {error.strerror or error}. Free some space, then go on "
                f"with resume=true (trainer.tensorboard=false does without them)."
            ) from error


def _silence_writers() -> None:
    """Keeps TensorBoard's thread from printing a traceback: its failure comes again with the next event."""
    before = threading.excepthook
    if getattr(before, "__module__", "") == __name__:
        return

    def hook(failure: threading.ExceptHookArgs) -> None:
        own = failure.thread is not None and type(failure.thread).__module__.startswith("tensorboard.")
        if not (own and isinstance(failure.exc_value, OSError)):
            before(failure)

    threading.excepthook = hook
