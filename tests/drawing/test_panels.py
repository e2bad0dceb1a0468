"""Many heads on one page, and what pictures of self-attention say."""

import itertools

import numpy as np
import pytest

from nmt.drawing import heatmap
from nmt.drawing.panels import rows_of_panels
from nmt.drawing.style import pixels
from nmt.system.errors import UserError
from nmt.translation.types import Translation
from tests.alignment.by_hand import WORKED, even
from tests.drawing.test_heatmap import check_page, texts

NAMES = ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]


def deep() -> Translation:
    """The worked example with three layers of two heads, all different."""
    assert WORKED.weights is not None
    weights = np.stack([WORKED.weights[at % 2] * (1 - at / 10) for at in range(6)])
    return WORKED._replace(weights=weights, heads=NAMES)


def named(picture: heatmap.NotebookFigure) -> dict[str, np.ndarray]:
    """The matrix of each panel by its name."""
    found = {}
    for axes in picture.axes:
        (name,) = {text.get_text() for text in axes.texts} & set(NAMES)
        found[name] = np.asarray(axes.images[0].get_array())
    return found


@pytest.mark.parametrize(("head", "names"), [("all", NAMES), ("2.all", ["2.1", "2.2"])])
def test_each_panel_is_the_matrix_of_its_head(head: str, names: list[str]) -> None:
    translation = deep()
    panels = named(heatmap.figure(translation, head=head, level="subword"))
    assert list(panels) == names
    assert translation.weights is not None
    for name, shown in panels.items():
        np.testing.assert_allclose(shown, translation.weights[NAMES.index(name)])


def test_layers_stand_below_each_other_and_labels_only_at_the_edges() -> None:
    picture = heatmap.figure(deep(), head="all")
    pixels(picture)  # lays out
    boxes = [axes.get_window_extent() for axes in picture.axes]
    for at, box in enumerate(boxes):
        assert box.x0 == pytest.approx(boxes[at % 2].x0)
        assert box.y0 == pytest.approx(boxes[at - at % 2].y0)
        assert box.height / 2 == pytest.approx(box.width / 3, rel=0.01)  # square cells, 2 rows and 3 columns
    assert boxes[0].y0 > boxes[2].y1
    assert boxes[0].x1 < boxes[1].x0
    labels = [[label.get_text() for label in axes.get_yticklabels()] for axes in picture.axes]
    assert labels == [["houses", "burn"], []] * 3
    labels = [[label.get_text() for label in axes.get_xticklabels()] for axes in picture.axes]
    assert labels == [["das", "Haus", "brennt"]] * 2 + [[]] * 4
    assert "6 heads, layer.head" in " ".join(texts(picture))


@pytest.mark.parametrize("words", [3, 15, 40])
def test_everything_lies_on_the_page_and_labels_do_not_meet(words: int) -> None:
    found = even(" ".join(["Donaudampfschiff"] * words), " ".join(["x"] * (words - 1)), heads=6)
    picture = heatmap.figure(found._replace(heads=NAMES), head="all", reference="r " * 200, title="t " * 100)
    check_page(picture)
    boxes = [label.get_window_extent() for label in picture.axes[0].get_xticklabels()]
    assert all(one.x1 <= other.x0 + 1 for one, other in itertools.pairwise(boxes))


def test_long_layers_are_cut_into_rows_of_one_length() -> None:
    assert rows_of_panels(["1.1", "1.2", "2.1"]) == [["1.1", "1.2"], ["2.1"]]
    assert [len(row) for row in rows_of_panels([f"1.{head}" for head in range(1, 17)])] == [8, 8]
    assert [len(row) for row in rows_of_panels([str(head) for head in range(9)])] == [5, 4]


def test_self_attention_says_whose_it_is() -> None:
    weights = np.full((2, 5, 5), 0.2, dtype=np.float32)
    source = WORKED._replace(
        text=WORKED.source, pieces=WORKED.source_pieces, spans=WORKED.source_spans, weights=weights, attends="encoder"
    )
    written = " ".join(texts(heatmap.figure(source, head="all", shift=1)))
    for part in ("Self-attention of the encoder", "each row at its word", "key →", "where the encoder looked"):
        assert part in written
    assert "on the end of the sentence" in written
    target = WORKED._replace(
        source=WORKED.text,
        source_pieces=["<s>", *WORKED.pieces[:-1]],
        source_spans=[None, *WORKED.spans[:-1]],
        weights=np.tril(np.ones((2, 4, 4), dtype=np.float32)) / np.arange(1, 5, dtype=np.float32)[:, None],
        attends="decoder",
    )
    picture = heatmap.figure(target, head=1)
    written = " ".join(texts(picture))
    for part in (
        "Self-attention of the decoder",
        "the word that it predicts",
        "input →",
        "the beginning of the sentence",
    ):
        assert part in written
    # "houses" has two pieces: its rows [1] and [1/2, 1/2] see <s>, and its own first piece; "burn" all three.
    shown = np.asarray(picture.axes[0].images[0].get_array())
    np.testing.assert_allclose(shown, [[0.25, 0.0], [2 / 3, 0.0]], atol=1e-6)


@pytest.mark.parametrize("head", ["4.all", "4.mean", "alle", "2.3"])
def test_heads_that_are_not_there_are_refused(head: str) -> None:
    with pytest.raises(UserError, match=f"head={head} does not exist. Give mean, 3.mean or one from 1.1 to 3.2"):
        heatmap.figure(deep(), head=head)
