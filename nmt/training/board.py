"""Curves, sample translations and attention maps in TensorBoard, which no other module uses."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.system.errors import UserError
from nmt.system.files import full
from nmt.system.terminal import markdown
from nmt.translation.named_heads import ALL, AUTO, Heads
from nmt.translation.types import Translation, Views


class Board:
    """Writes events to `folder` if it is on; raises UserError if they cannot be written."""

    def __init__(self, folder: Path, on: bool, first_step: int = 0) -> None:
        """Hide events of earlier sessions after `first_step`, where this session begins."""
        self._writer = None
        self._folder = folder
        self._open = contextlib.ExitStack()
        if on:
            from torch.utils.tensorboard import SummaryWriter

            with self._writable(), self._open as stack:
                stack.enter_context(_silent_writers())
                self._writer = SummaryWriter(str(folder), purge_step=first_step + 1 if first_step else None)
                self._open = stack.pop_all()

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Add one point to each curve."""
        if self._writer is None:
            return
        with self._writable():
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def samples(self, step: int, translations: Sequence[Translation], views: Sequence[Views | None] = ()) -> None:
        """Add sentences with their translations and attention maps, and self-attention maps from `views`.

        A map of several layers shows every head.
        """
        if self._writer is None:
            return
        from nmt.drawing.heatmap import figure
        from nmt.drawing.style import pixels

        with self._writable():
            for number, translation in enumerate(translations):
                text = f"{markdown(translation.source)}\n\n> {markdown(translation.text)}"  # the page takes Markdown
                self._writer.add_text(f"samples/{number}", text, step)
                maps = {"attention": translation if translation.weights is not None else None}
                if number < len(views) and (seen := views[number]) is not None:
                    maps |= {"encoder_self_attention": seen.encoder, "decoder_self_attention": seen.decoder}
                for name, view in maps.items():
                    if view is not None:
                        picture = pixels(figure(view, head=ALL if Heads(view.heads).layers else AUTO))
                        self._writer.add_image(f"{name}/{number}", picture, step, dataformats="HWC")

    def close(self) -> None:
        """End the events file."""
        with self._open:
            if self._writer is not None:
                with contextlib.suppress(OSError):  # the error was already reported
                    self._writer.close()

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            cure = "Free some space" if full(error) else f"Make the folder writable: chmod -R u+w {self._folder}"
            raise UserError(
                f"Cannot write the curves in {self._folder}: {error.strerror or error}. {cure}. Then resume with "
                f"resume=true, or without curves: trainer.tensorboard=false."
            ) from error


@contextlib.contextmanager
def _silent_writers() -> Iterator[None]:
    """Keep TensorBoard's thread from printing a traceback: the next event raises the same error."""
    earlier = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        of_writer = failure.thread is not None and type(failure.thread).__module__.startswith("tensorboard.")
        if not (of_writer and isinstance(failure.exc_value, OSError)):
            earlier(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = earlier
