"""Pictures: what they show, in every script, with and without fonts, and without a warning."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from nmt.drawing import fonts, heatmap
from nmt.drawing.matrix import ZERO
from nmt.drawing.style import pixels
from nmt.system.errors import UserError
from tests.alignment.by_hand import EMPTY, WORKED, even


def texts(picture: Figure) -> list[str]:
    """Everything that is written in a picture."""
    return [text.get_text() for text in picture.findobj(Text) if isinstance(text, Text) and text.get_text()]


def test_the_matrix_has_target_rows_and_source_columns() -> None:
    picture = heatmap.figure(WORKED, level="subword", head=1)
    assert WORKED.weights is not None
    shown = np.asarray(picture.axes[0].images[0].get_array())
    np.testing.assert_allclose(shown, WORKED.weights[1])
    assert picture.axes[0].images[0].get_clim() == (0, 1)


def test_exact_zeros_are_grey_and_small_weights_are_not() -> None:
    weights = np.array([[[0, 1e-6, 1], [0.5, 0, 0.5], [1, 1e-6, 0]]], dtype=np.float32)
    picture = heatmap.figure(even("a b", "x y")._replace(weights=weights), level="subword")
    image = picture.axes[0].images[0]
    shown = image.get_array()
    assert shown is not None
    colours = image.to_rgba(shown)
    grey = [to_hex(colour) == ZERO for row in colours for colour in row]
    assert grey == (weights == 0).ravel().tolist()
    assert "A grey cell has a weight of exactly 0." in " ".join(" ".join(texts(picture)).split())
    assert "grey" not in " ".join(texts(heatmap.figure(even("a b", "x y"), level="subword")))


def test_labels_stand_at_their_rows_and_columns() -> None:
    picture = heatmap.figure(WORKED)
    axes = picture.axes[0]
    pixels(picture)  # lays out
    assert [label.get_text() for label in axes.get_xticklabels()] == ["das", "Haus", "brennt"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["houses", "burn"]
    assert axes.get_xticks().tolist() == [0, 1, 2]
    assert axes.get_yticks().tolist() == [0, 1]
    matrix = axes.get_window_extent()
    assert all(label.get_window_extent().y0 >= matrix.y1 for label in axes.get_xticklabels())  # above the first row
    assert all(label.get_window_extent().x1 <= matrix.x0 for label in axes.get_yticklabels())  # left of it


def test_a_picture_says_what_it_shows() -> None:
    written = " ".join(texts(heatmap.figure(WORKED, reference="houses are burning", title="line 7")))
    for part in ("line 7", "word level", "mean of 2 heads", "shift 0", "Reference: houses are burning"):
        assert part in written
    assert "where the decoder looked, not why" in written
    written = " ".join(texts(heatmap.figure(WORKED, level="subword", head=1, shift=1)))
    for part in ("subword level", "head 1 (of heads 0 to 1)", "shift 1", "\u2581hou", "</s>"):
        assert part in written


def test_values_are_written_into_small_matrices_only() -> None:
    assert ".75" in texts(heatmap.figure(WORKED, head=0))
    large = even(" ".join("abcdefghijklmn"), "x y")
    assert not any(text.startswith(".") for text in texts(heatmap.figure(large)))


def test_pictures_grow_with_the_sentence_but_not_without_end() -> None:
    short = heatmap.figure(even("a b c", "d e f"))
    long = heatmap.figure(even(" ".join(["Wort"] * 60), " ".join(["word"] * 70)))
    assert long.get_figheight() > 4 * short.get_figheight()
    endless = heatmap.figure(even(" ".join(["Wort"] * 500), " ".join(["word"] * 3)))
    assert max(endless.get_size_inches()) * endless.dpi <= 12_001


def check_page(picture: Figure) -> None:
    """Assert that everything that is written lies on the page."""
    pixels(picture)  # lays out
    width, height = picture.get_size_inches() * picture.dpi
    for text in picture.findobj(Text):
        if isinstance(text, Text) and text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert 0 <= box.x0 <= box.x1 <= width, text
            assert 0 <= box.y0 <= box.y1 <= height, text


def test_everything_lies_on_the_page() -> None:
    translation = even("ein Donaudampfschifffahrtsgesellschaftskapitän " + "x " * 14 + "Reiterstandbilder", "a b c")
    check_page(heatmap.figure(translation, reference="r " * 200, title="t " * 100))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ولد صغير يلعب بالكرة", "A small boy plays ball"),
        ("A small boy plays", "ילד קטן משחק בכדור"),
        ("A girl plays with a dog", "一个小女孩正在和狗玩耍。"),
        ("赤い服を着た女の子が犬と遊んでいます。", "A girl in red"),
        ("소녀가 개와 놀고 있다", "A girl plays"),
        ("Девочка играет с собакой", "Ένα κορίτσι παίζει"),
        ("हिन्दी में एक वाक्य", "ประโยคหนึ่งในภาษาไทย"),
        ("costs $5 and $6_a^b \\frac{1", "signs \U0001f916 \ue000 \x07 \u200b x\u2028y a\u0301"),
    ],
)
@pytest.mark.parametrize("level", ["word", "subword"])
def test_every_script_is_drawn_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, source: str, text: str, level: heatmap.Level
) -> None:
    # Warnings are errors in this suite; matplotlib speaks through the log as well.
    picture = heatmap.figure(even(source, text), level=level, reference=f"{text} / {source}", title=text)
    notes = picture.save(tmp_path / "x.png")
    assert imread(tmp_path / "x.png").ndim == 3
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    # With or without a font for it: never silently.
    drawn = fonts.families_for(fonts.shape(fonts.clean(source + text)))[1]
    assert bool(notes) == bool(drawn)


def test_letters_without_a_font_become_boxes_and_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_names", lambda: [fonts.BASE])
    fonts._coverage.cache_clear()
    try:
        found = even("A dog", "狗在叫。")
        picture = heatmap.figure(found)
        assert fonts.BOX in texts(picture)
        (note,) = picture.notes
    finally:
        fonts._coverage.cache_clear()
    assert "No installed font has Chinese characters" in note
    assert "fonts-noto-cjk" in note


def test_the_note_names_each_script_and_its_package() -> None:
    note = fonts.missing_note("中を。ก")
    assert note is not None
    assert "Chinese characters, Hiragana, Thai" in note
    assert "fonts-noto-cjk fonts-noto-core" in note or "fonts-noto-core" in note
    assert fonts.missing_note([]) is None


def test_arabic_is_shaped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # A matplotlib that shapes text itself gets it as written; an older one gets joined forms, reversed.
    monkeypatch.setattr(fonts, "_SHAPES_ITSELF", True)
    assert fonts.shape("ولد") == "ولد"
    monkeypatch.setattr(fonts, "_SHAPES_ITSELF", False)
    assert fonts.shape("بي") == "\ufef2\ufe91"  # final yeh, initial beh
    assert fonts.shape("dog") == "dog"


def test_clean_leaves_nothing_without_a_shape() -> None:
    assert fonts.clean("a\tb\u2028c\u00a0d\u200be\r") == "a·b·c de·"


def test_an_empty_line_gives_a_picture_too(tmp_path: Path) -> None:
    assert list(heatmap.figure(EMPTY).save(tmp_path / "x.png")) == []
    assert (tmp_path / "x.png").stat().st_size > 0


def test_pixels_are_for_tensorboard() -> None:
    picture = heatmap.figure(WORKED)
    image = pixels(picture)
    width, height = picture.get_size_inches() * picture.dpi
    assert image.shape == (int(height), int(width), 3)
    assert image.dtype == np.uint8


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UserError, match="decoder=none"):
        heatmap.figure(WORKED._replace(weights=None))
    with pytest.raises(UserError, match="level=letter"):
        heatmap.figure(WORKED, level="letter")  # type: ignore[arg-type]
