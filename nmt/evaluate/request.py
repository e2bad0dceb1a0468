"""The validated settings of `nmt.evaluate` for runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nmt.build.open import TranslatorRequest
from nmt.build.requests import GivenText
from nmt.data.document_lines import Followed
from nmt.system.errors import UserError
from nmt.translation.types import PictureFormat, View


@dataclass(frozen=True)
class Evaluating:
    """The settings of `nmt.evaluate`; `configs/evaluate.yaml` explains them."""

    translator: TranslatorRequest
    text: GivenText
    languages: Any
    output: Path | None
    pictures: int
    lines: Sequence[Any]
    view: View
    head: str
    shift: Literal[0, 1]
    heatmap_format: PictureFormat = "png"
    documents: Followed = "blank"

    def __post_init__(self) -> None:
        for line in self.lines:
            if not isinstance(line, int) or isinstance(line, bool):
                raise UserError(f"lines={line}: lines are numbered from 1, for example lines=[3,17].")

    @property
    def folder(self) -> Path:
        """The folder for the results, with one subfolder for each split; an ensemble has a folder of its own."""
        runs = self.translator.runs
        if self.output is not None:
            return self.output
        if len(runs) == 1:
            return runs[0].files.evaluation
        others = "+".join(run.folder.resolve().name for run in runs[1:])
        return runs[0].folder / f"evaluation-with-{others}"[:200]
