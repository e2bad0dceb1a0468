"""Documents on the command line: in and out by their ending, one message for what cannot be."""

from pathlib import Path

import pytest

from tests.small import call, refusal

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
        (["output=out.srt", "scores=true", "resume=true"], "scores=True, resume=true: for lines only"),
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
    assert message in refusal(capfd, tmp_path, "translate", f"run={trained}", "input=in.srt", *more)


@pytest.mark.parametrize("name", ["in.srt", "in.vtt"])
def test_a_damaged_document_leaves_nothing(
    trained: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00\xd8 no document")
    output = tmp_path / f"out{Path(name).suffix}"
    message = refusal(capfd, tmp_path, "translate", f"run={trained}", f"input={tmp_path / name}", f"output={output}")
    assert name in message
