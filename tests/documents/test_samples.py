"""Files as LibreOffice and this project wrote them: nothing but the text changes."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.documents.trips import swapped, translate

HERE = Path(__file__).parent
SAMPLES = sorted(
    path for folder in (HERE / "samples", HERE.parents[1] / "docs" / "at-work") for path in folder.glob("*.*")
)


def members(data: bytes) -> dict[str, bytes]:
    """The content of each member of an archive; of another file, the whole of it."""
    if not data.startswith(b"PK"):
        return {"": data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("sample", [path for path in SAMPLES if path.suffix != ".png"], ids=lambda path: path.name)
def test_nothing_but_the_text_of_a_sample_changes(sample: Path, tmp_path: Path) -> None:
    data, path = sample.read_bytes(), tmp_path / sample.name
    seen, same = translate(path, data, str)
    assert same == data
    assert len(seen) > 1
    _, changed = translate(path, data, swapped)
    again, _ = translate(path, changed, swapped)
    assert again == [swapped(text) for text in seen]
    ours, theirs = members(changed), members(data)
    assert list(ours) == list(theirs)
    text = ("", "content.xml", "word/document.xml", "xl/sharedStrings.xml", "styles.xml")
    kept = [name for name in theirs if name not in text and not name.startswith(("ppt/slides/", "ppt/notesSlides/"))]
    assert all(ours[name] == theirs[name] for name in kept)
