"""Documents that were changed at random: a message or a document, never another error."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.documents.formats import read_document
from nmt.documents.sentences import SplitDocument
from nmt.system.errors import UserError
from tests.documents.test_catalogues import PO, YAML
from tests.documents.test_markup_documents import MARKDOWN, PAGE, TMX, XLIFF
from tests.documents.test_office_documents import docx, run
from tests.documents.test_subtitles import SRT
from tests.documents.trips import linked, swapped, translate

FILES = {
    "a.po": PO.encode(),
    "a.yaml": YAML.encode(),
    "a.json": b'{"a": {"b": ["Hallo Welt", 1e5]}, "k": "x\\ny"}',
    "a.csv": b'a,"b c"\nd,"e ""f"\n' * 5,
    "a.md": MARKDOWN.encode(),
    "a.html": PAGE.encode(),
    "a.tmx": TMX.encode(),
    "a.xlf": XLIFF.encode(),
    "a.srt": SRT.encode(),
    "a.docx": docx(f"<w:p>{run('Haus')}<w:r><w:tab/></w:r></w:p>"),
}


def damaged(data: bytes, generator: random.Random) -> Iterator[bytes]:
    """Copies with some bytes changed, left out or repeated."""
    for _ in range(60):
        copy = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            at, other = generator.randrange(len(copy)), generator.randrange(len(copy))
            match generator.randrange(3):
                case 0:
                    copy[at] = generator.choice(b"<>\"'&\\{}[]()*`:-|#!\n ;0aA\xff")
                case 1:
                    copy[at:at] = copy[other : other + 20]
                case _:
                    del copy[at : at + generator.randint(1, min(30, len(copy) - 1))]
        yield bytes(copy)


@pytest.mark.parametrize("name", FILES)
def test_damage_is_refused_or_kept(tmp_path: Path, name: str) -> None:
    messages = list[str]()
    for data in damaged(FILES[name], random.Random(1)):
        (tmp_path / name).write_bytes(data)
        try:
            document = read_document(tmp_path / name, "de", "en")
            assert document.write([None] * len(document.segments)) == data
            split = SplitDocument(document, "de")
            document.write(split.joined(linked(text, swapped(text)) for text in split.sentences))
        except UserError as error:
            messages.append(str(error))
    assert len(messages) < 60
    assert all(name in message for message in messages)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.html", "<b>x " * 20_000),
        ("a.html", '<a "' * 20_000),
        ("a.html", "<!DOCTYPE[" * 20_000),
        ("a.md", "*a " * 2000),
        ("a.csv", '"a' * 20_001),
        ("a.csv", "a@." * 20_000 + " b"),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{' ' * 20_000}x\n"),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{'a' * 20_000}\rb\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "{\\" * 20_000),
    ],
)
def test_much_of_one_thing_takes_no_long_time(tmp_path: Path, name: str, data: str) -> None:
    (tmp_path / name).write_text(data, encoding="utf-8")
    with contextlib.suppress(UserError):
        assert len(read_document(tmp_path / name).segments) < 20_001


def test_marks_of_the_writer_are_no_text(tmp_path: Path) -> None:
    """A value that looks like the place of a translation would be filled for ever."""
    data = b'{"a": "Hallo \\ufdd00\\ufdd1\\n\\ufdd00\\ufdd1"}'
    _, written = translate(tmp_path / "a.json", data, str.upper)
    assert "\\ufffd0\\ufffd" in written.decode()
