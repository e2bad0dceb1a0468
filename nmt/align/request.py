"""The validated settings of `nmt.align` for runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nmt.alignment.symmetrization import SYMMETRIZATIONS, symmetrize
from nmt.build.aligner import AlignerRequest
from nmt.build.requests import Data
from nmt.data.document_lines import Followed
from nmt.links import Base, Link
from nmt.system.errors import SettingError, UserError
from nmt.system.limits import Limit

Share = Annotated[float, Limit(lambda value: 0 < value <= 1, "greater than 0 and at most 1")]


@dataclass(frozen=True)
class Aligning:
    """The settings of `nmt.align` for runs; `configs/align.yaml` explains them."""

    aligner: AlignerRequest
    run: str | Sequence[str] | None
    reverse: Path | None
    source: Path | None
    target: Path | None
    split: str | None
    gold: Path | None
    gold_base: Base
    words: str
    languages: Any
    method: Literal["attention", "saliency"]
    shift: Literal["0", "1", "auto"]
    valid_source: Path | None
    valid_target: Path | None
    valid_gold: Path | None
    valid_words: str | None
    threshold: Share | None
    symmetrize: str | None
    output: Path | None
    matrix: Path | None
    data: Data | None = None
    documents: Followed = "blank"

    def __post_init__(self) -> None:
        if self.run is None:
            raise UserError("Give run=checkpoints/NAME to make links, or links=FILE gold=FILE to score existing links.")
        if self.method == "saliency" and self.shift == "1":
            raise UserError("shift=1 works only with method=attention. Leave out shift=1.")
        if self.symmetrize is not None and self.reverse is None:
            raise UserError("symmetrize= combines the links of two directions: give reverse=RUN as well.")
        if self.symmetrize not in (None, *SYMMETRIZATIONS):
            raise SettingError("symmetrize", self.symmetrize, f"must be one of {', '.join(SYMMETRIZATIONS)}.")

    @property
    def joining(self) -> str:
        """The rule that combines the links of two directions."""
        return self.symmetrize or "grow-diag-final"

    def join(self, links: Sequence[Iterable[Link]]) -> set[Link]:
        """The links of one direction, or of both combined."""
        return set(links[0]) if len(links) == 1 else symmetrize(set(links[0]), set(links[1]), self.joining)
