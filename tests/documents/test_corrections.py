"""Corrections in a translation memory: kept once, never lost, read again, and by an independent reader."""

import multiprocessing
import threading
from pathlib import Path

import lxml.etree
import pytest

from nmt.documents import corrections
from nmt.documents.corrections import keep_correction
from nmt.system.errors import UserError
from nmt.system.locks import locked
from nmt.translation.translation_memory import open_memory
from tests.documents.test_markup_documents import TMX

CODES = ("de", "en")


def pairs(path: Path) -> list[list[str]]:
    """The pairs of a memory, by lxml."""
    units = lxml.etree.parse(path).getroot().iter("tu")
    return [[str(each.text) for each in unit.iter("seg")] for unit in units]


def test_a_correction_is_kept_once_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "corrections.tmx"
    kept = [("Ein Hund & <b>", "A dog & <b>"), ("Zwei  Hunde", "Two dogs"), ("Ein Hund & <b>", "One dog")]
    assert [keep_correction(path, *pair, CODES) for pair in kept] == [True] * 3
    before = path.read_bytes()
    assert not keep_correction(path, *kept[2], CODES)
    assert path.read_bytes() == before
    assert pairs(path) == [["Ein Hund & <b>", "A dog & <b>"], ["Zwei Hunde", "Two dogs"], ["Ein Hund & <b>", "One dog"]]
    memory = open_memory(path, CODES)
    assert memory is not None
    assert [memory.exact(text) for text in (" Zwei Hunde ", "Ein Hund & <b>", "zwei hunde")] == [
        "Two dogs",
        "One dog",
        None,
    ]
    back = open_memory(path, CODES[::-1])
    assert back is not None
    assert back.exact("Two dogs") == "Zwei Hunde"


@pytest.mark.parametrize("codes", [("source", "target"), ("en-GB", "en_US"), ("deu_Latn", "x"), ("fr", "oc")])
def test_a_single_pair_of_any_languages_is_read_again(tmp_path: Path, codes: tuple[str, str]) -> None:
    path = tmp_path / "corrections.tmx"
    assert keep_correction(path, "Ein Hund", "A dog", codes)
    memory = open_memory(path, codes)
    assert memory is not None
    assert (len(memory), memory.exact("Ein Hund")) == (1, "A dog")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_memory_of_another_program_stays_byte_for_byte(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "corrections.tmx"
    path.write_bytes(TMX.replace("UTF-8", encoding[:6]).encode(encoding))
    before = path.read_bytes()
    assert keep_correction(path, "Häuser", "houses", CODES)
    after = path.read_bytes()
    at = next(at for at, (ours, theirs) in enumerate(zip(before, after, strict=False)) if ours != theirs)
    added = len(after) - len(before)
    assert before == after[:at] + after[at + added :]
    assert "houses" in after.decode(encoding.removesuffix("-sig"))


def _keep(path: Path, name: str) -> None:
    for number in range(5):
        assert keep_correction(path, f"{name} {number}", "x", CODES)


@pytest.mark.long
def test_nothing_is_lost_when_many_keep_at_once(tmp_path: Path) -> None:
    path = tmp_path / "corrections.tmx"
    workers = [threading.Thread(target=_keep, args=(path, f"thread {number}")) for number in range(3)]
    spawned = multiprocessing.get_context("spawn").Process(target=_keep, args=(path, "process"))
    spawned.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    spawned.join(300)
    assert spawned.exitcode == 0
    names = [*(f"thread {number}" for number in range(3)), "process"]
    assert sorted(pairs(path)) == sorted([f"{name} {number}", "x"] for name in names for number in range(5))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (None, " \t", "source: is blank"),
        (None, "a\0b", "characters that no text has"),
        ("<tmx><body>", "a", "not a valid .tmx file"),
        ("<html><body></body></html>", "a", "not a .tmx file with a body"),
        ("Notes", "a", "not a valid .tmx file"),
        ('<!DOCTYPE tmx [<!ENTITY a "b">]><tmx><body></body></tmx>', "a", "entities"),
    ],
)
def test_what_is_refused_leaves_everything_as_it_was(
    tmp_path: Path, content: str | None, source: str, message: str
) -> None:
    path = tmp_path / "corrections.tmx"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        keep_correction(path, source, "b", CODES)
    assert (path.read_text(encoding="utf-8") if path.exists() else None) == content


def test_who_waits_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections, "PATIENCE", 0)
    path = tmp_path / "corrections.tmx"
    with locked(path), pytest.raises(UserError, match="another process is writing corrections"):
        keep_correction(path, "a", "b", CODES)


def test_similar_pairs_come_in_their_order() -> None:
    memory = open_memory({"Ein Hund rennt.": "A dog runs.", "Ein Hund rennt": "A dog runs", "Haus": "house"})
    assert memory is not None
    assert [each.target for each in memory.similar("Ein Hund  rennt.")] == ["A dog runs.", "A dog runs"]
    assert memory.similar("Ein Hund rennt.")[0].similarity == 1
    assert memory.similar("Zwei Katzen") == []


def test_a_memory_of_other_languages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "corrections.tmx"
    keep_correction(path, "Ein Hund", "A dog", CODES)
    for codes in (("fr", "en"), ("de", "fr")):
        with pytest.raises(UserError, match=f"no pairs from {codes[0]} to {codes[1]}"):
            open_memory(path, codes)
    assert open_memory(path, ("source", "target")) is not None
    assert open_memory(path, ("de_AT", "eng")) is not None
