"""Documents on the command line: in and out by their ending, one message for what cannot be."""

import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from nmt.translation.glossary import Glossary
from tests.small import Capture, call, environment, pairs, refusal, write_lines

CUE = "1\n00:00:01,000 --> 00:00:03,000\n{}\n\n2\n00:00:03,100 --> 00:00:05,000\n{}\n"


def test_a_document_becomes_a_document(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "in.srt", tmp_path / "out.srt"
    source.write_text(CUE.format("<i>eins zwei</i>", "drei."), encoding="utf-8")
    assert call("translate", f"run={trained}", f"input={source}", f"output={output}", "batch_sentences=1") == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == CUE.splitlines()[:2]
    assert lines[2].startswith("<i>one")
    assert "Traceback" not in capfd.readouterr().err


def test_a_document_can_be_lines(trained: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.srt", tmp_path / "out.txt"
    source.write_text("eins\nzwei\n", encoding="utf-8")
    assert call("translate", f"run={trained}", f"input={source}", f"output={output}", "input_format=lines") == 0
    assert output.read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "Give output=NAME.srt"),
        (["output=out.vtt"], "Give output=NAME.srt"),
        (["output=out.srt", "format=jsonl"], "format=jsonl: for lines only"),
        (["output=out.srt", "scores=true", "tags=html"], "scores=True, tags=html: for lines only"),
        (["output=out.srt", "resume=true"], "There is nothing to resume"),
        (["input=old.doc", "output=out.doc"], "input=old.doc: .doc documents are not read. Save it as .docx"),
        (
            ["input=in.txt", "output=out.docx"],
            "output=out.docx: a .docx file is made from one, and input=in.txt is lines",
        ),
        (
            ["input=office.srt", "output=out.srt"],
            "office.srt is a .docx file with another ending. Rename it to office.docx.",
        ),
        (
            ["input=office.odt", "output=out.odt"],
            "office.odt is a .docx file with another ending. Rename it to office.docx.",
        ),
        (["input=pdf.docx", "output=out.docx"], "pdf.docx is a PDF file, whatever its ending says. Save it as .docx."),
        (["input=rich.docx", "output=out.docx"], "rich.docx is an RTF document, whatever its ending says. Save it as"),
        (["input=text.docx", "output=out.docx"], "text.docx is no .docx file: its content is not that of an office"),
    ],
)
def test_what_a_document_cannot_have(
    trained: Path,
    tmp_path: Path,
    more: list[str],
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.srt").write_text(CUE.format("eins", "zwei"), encoding="utf-8")
    for name in ("office.srt", "office.odt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("word/document.xml", "<w:document/>")
    for name, text in (("old.doc", "x"), ("in.txt", "eins"), ("pdf.docx", "%PDF-1.4"), ("rich.docx", r"{\rtf1 x}")):
        (tmp_path / name).write_text(text)
    (tmp_path / "text.docx").write_text("eins")
    assert message in refusal(capfd, tmp_path, "translate", f"run={trained}", "input=in.srt", *more)


def test_terms_are_reported_by_sentence(trained: Path, tmp_path: Path, capfd: Capture) -> None:
    source, terms = tmp_path / "in.md", write_lines(tmp_path / "terms.tsv", ["zwei\tnine", "acht\teight"])
    source.write_text("**eins** zwei\n\nacht\n\ndrei\n", encoding="utf-8")
    report, output = tmp_path / "report.tsv", tmp_path / "out.md"
    line = [f"run={trained}", f"input={source}", f"output={output}", f"glossary={terms}"]
    assert call("translate", *line, f"terms={report}") == 0
    rows = [row.split("\t") for row in report.read_text(encoding="utf-8").splitlines()]
    assert [row[:4] for row in rows] == [
        ["sentence", "source", "target", "used"],
        ["1", "zwei", "nine", "yes"],
        ["2", "acht", "eight", "yes"],
    ]
    assert "Give two different paths" in refusal(capfd, tmp_path, "translate", *line, f"terms={output}")
    assert "is the input glossary=" in refusal(capfd, tmp_path, "translate", *line, f"terms={terms}")


@pytest.mark.parametrize("name", ["in.srt", "in.vtt"])
def test_a_damaged_document_leaves_nothing(
    trained: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00\xd8 no document")
    output = tmp_path / f"out{Path(name).suffix}"
    message = refusal(capfd, tmp_path, "translate", f"run={trained}", f"input={tmp_path / name}", f"output={output}")
    assert name in message


UNFINISHED = """
import sys, time
from nmt.translate import document_file
from nmt.translate.__main__ import run
document_file.CHUNK = 4
document_file.write_bytes = lambda *_: time.sleep(60)
sys.exit(run())
"""


@pytest.mark.long
def test_a_killed_document_continues_to_the_same_bytes(trained: Path, tmp_path: Path, capfd: Capture) -> None:
    source, output, journal = (tmp_path / name for name in ("in.md", "out.md", "out.md.part"))
    write_lines(source, [f"- **{sentence}** zwei\n" for sentence, _ in pairs(23, seed=9)])
    line = [f"run={trained}", f"input={source}", f"output={output}", "threads=1"]
    assert call("translate", *line) == 0
    whole = output.read_bytes()
    output.write_text("as it was")
    with subprocess.Popen([sys.executable, "-c", UNFINISHED, *line], env=environment()) as process:
        while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 23):
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    (tmp_path / ".out.md.lock").unlink()
    assert output.read_text() == "as it was"
    lines = journal.read_text(encoding="utf-8").split("\n")
    write_lines(journal, lines[:14])
    assert "has left 14 sentences for" in refusal(capfd, tmp_path, "translate", *line)
    other = [*line[:1], f"input={tmp_path / 'other.md'}", *line[2:], "resume=true"]
    write_lines(tmp_path / "other.md", ["eins\n"] * 23)
    assert f"{journal} is of another document" in refusal(capfd, tmp_path, "translate", *other)
    with journal.open("a", encoding="utf-8") as file:
        file.write(lines[14][:30])  # as a kill in the middle of writing leaves
    assert call("translate", *line, "resume=true") == 0
    assert "14 sentences are translated already." in capfd.readouterr().err
    assert output.read_bytes() == whole
    assert {path.name for path in tmp_path.glob("*out*")} == {"out.md"}


def test_placeholders_of_catalogues_are_kept(trained: Path, tmp_path: Path, capfd: Capture) -> None:
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text('{"a": "eins {name} zwei", "b": "drei"}', encoding="utf-8")
    line = [f"run={trained}", f"input={source}", f"output={output}"]
    assert call("translate", *line) == 0
    assert output.read_text(encoding="utf-8").count("{name}") == 1
    assert call("translate", *line, "search=greedy") == 0
    assert "1 texts of" in capfd.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Glossary, "find", lambda *_: pytest.fail("nothing is to be kept"))
        assert call("translate", *line, "keep=[]") == 0
