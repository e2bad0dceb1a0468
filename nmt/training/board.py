"""The one door to TensorBoard: curves, sample translations and attention pictures."""

from collections.abc import Sequence
from pathlib import Path

from nmt.translation.types import Translation


class Board:
    """Writes events under `folder`, or nothing where it is off."""

    def __init__(self, folder: Path, on: bool) -> None:
        self._writer = None
        if on:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder))

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """One point of each curve."""
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def samples(self, step: int, translations: Sequence[Translation]) -> None:
        """Sentences with their translations, and what each looked at."""
        if self._writer is None:
            return
        from nmt.evaluation.heatmap import figure

        for number, translation in enumerate(translations):
            text = f"{translation.source}\n\n> {translation.text}"
            self._writer.add_text(f"samples/{number}", text, step)
            if translation.weights is not None:
                self._writer.add_figure(f"attention/{number}", figure(translation), step)

    def close(self) -> None:
        """Ends the events file."""
        if self._writer is not None:
            self._writer.close()
