"""Page layout for one or more matrices with a header above and captions below; the page grows to fit everything."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nmt.drawing import fonts
from nmt.drawing.layout import wrap
from nmt.drawing.style import DPI, ruler

_MOST_PIXELS = 12_000  # per side; larger pictures have a lower resolution
_EDGE = 0.18  # margin of the page in inches


class Caption(NamedTuple):
    """A paragraph of the header or below the matrices."""

    text: str
    points: float
    colour: str

    @property
    def leading(self) -> float:
        """The distance between lines in inches."""
        return self.points * 1.45 / 72


def lay_out(picture: Figure, header: Sequence[Caption], captions: Sequence[Caption], families: Sequence[str]) -> None:
    """Enlarge a page filled by the matrices, so that labels, header and captions fit, too."""
    inner_width, inner_height = picture.get_size_inches()
    renderer = FigureCanvasAgg(Figure(dpi=picture.dpi)).get_renderer()  # type: ignore[no-untyped-call]
    box = picture.get_tightbbox(renderer)  # inches, from the lower left corner of the matrices
    width = max(box.width, 6.4 - 2 * _EDGE) + 2 * _EDGE
    header, captions = (
        [
            caption._replace(text=fonts.shape(line))
            for caption in texts
            for line in wrap(caption.text, width - 2 * _EDGE, ruler(fonts.properties(families, caption.points)))
        ]
        for texts in (header, captions)
    )
    below = _EDGE + sum(line.leading for line in captions) + 0.16
    height = below + box.height + 0.12 + sum(line.leading for line in header) + _EDGE
    picture.set_size_inches(width, height)
    left, bottom = (width - box.width) / 2 - box.x0, below - box.y0
    for axes in picture.axes:
        x, y, across, along = axes.get_position(original=True).bounds  # relative to the page before enlarging
        corner = (left + x * inner_width) / width, (bottom + y * inner_height) / height
        axes.set_position((*corner, across * inner_width / width, along * inner_height / height))
    for lines, top in ((header, height - _EDGE + 0.05), (captions, below - 0.1)):
        for line in lines:
            top -= line.leading
            font = fonts.properties(families, line.points)
            picture.text(
                _EDGE / width, top / height, line.text, color=line.colour, fontproperties=font, parse_math=False
            )
    picture.dpi = min(DPI, _MOST_PIXELS / max(width, height))
