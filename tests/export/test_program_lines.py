"""Exported programs read and write lines as `nmt.translate` does, whatever the bytes and the environment are."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.lines import iterate_lines
from nmt.export.program_lines import arriving, protected, spelled
from nmt.system.errors import UserError
from nmt.text.tokenizer_trainer import TokenizerTrainer
from tests.small import call

needs_both = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("ctranslate2", "onnx", "onnxruntime")),
    reason="needs ctranslate2, onnx and onnxruntime: pip install -e '.[export]'",
)
MARK = b"\xef\xbb\xbf"
#: Each is a trap for some way of reading lines.
LINES = ["eins zwei", "", "  ", "fünf \u2028 rot", "\u2581 null \u2581", "haus\x85blau", "drei\r", "Ωmega 😀", "acht"]
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {"PYTHONIOENCODING": "cp1252"},
    {"PYTHONIOENCODING": "utf-16", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
)


@given(
    st.lists(st.text(max_size=5) | st.sampled_from(LINES) | st.binary(max_size=4), max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    *(st.booleans(),) * 2,
    st.sampled_from([1, 2, 100]),
)
def test_lines_are_those_of_nmt(lines: list[str | bytes], end: bytes, ended: bool, mark: bool, piece: int) -> None:
    parts = [line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass") for line in lines]
    data = MARK * mark + end.join(parts) + end * (ended and bool(lines))

    class Slow(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return super().read1(min(piece, size or piece))

    expected, found = list[str](), list[str]()
    failed = False
    try:
        expected.extend(iterate_lines(io.BytesIO(data), "translate.py"))
    except UserError:
        failed = True
        with contextlib.suppress(UserError):
            for line in iterate_lines(io.BytesIO(data), "translate.py"):
                found.append(line)
        expected, found = found, []
    with pytest.raises(SystemExit, match="not valid UTF-8") if failed else contextlib.nullcontext():
        for chunk in arriving(Slow(data)):
            found += chunk
    assert found == expected


@pytest.mark.parametrize("kind", ["unigram", "word", "char"])
def test_pieces_are_spelled_as_in_nmt(kind: str) -> None:
    trainer = TokenizerTrainer(kind, vocabulary_size=300)
    vocabulary = trainer.train(["eins zwei drei", "haus rot"] * 9, ["one two three", "house red"] * 9)[0].target
    allowed = sorted({*range(4, vocabulary.size)} - {*vocabulary.forbidden})

    @given(st.lists(st.sampled_from(allowed), max_size=12), st.sampled_from([*LINES, "a\u2581b", "two three"]))
    def check(tokens: list[int], line: str) -> None:
        assert spelled(vocabulary.pieces(tokens)) == vocabulary.decode(tokens)
        (encoded,) = vocabulary.encode([line])
        assert encoded == vocabulary._processor.encode(protected(line))

    check()


@pytest.fixture(scope="module")
def exports(trained: Path, transformer: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """The run and the exported folder of each format, which searches greedily."""
    folder = tmp_path_factory.mktemp("exports")
    runs = {"ctranslate2": transformer, "onnx": trained}
    for name, run in runs.items():
        assert call("export", f"run={run}", f"format={name}", f"output={folder / name}") == 0
        manifest = folder / name / "manifest.json"
        settings = json.loads(manifest.read_text(encoding="utf-8"))
        manifest.write_text(json.dumps({**settings, "beam_size": 1}), encoding="utf-8")
    return {name: (run, folder / name / "translate.py") for name, run in runs.items()}


def programs(
    program: Path, data: bytes, *arguments: str, variables: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """What a program makes of its standard input, outside this project."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment = {**inherited, "OMP_NUM_THREADS": "1", **(variables or {})}
    line = [sys.executable, str(program), *arguments]
    return subprocess.run(line, input=data, capture_output=True, env=environment, cwd="/", check=False, timeout=600)


@needs_both
@pytest.mark.long
@pytest.mark.parametrize("name", ["ctranslate2", "onnx"])
def test_the_programs_translate_the_same_lines(name: str, exports: dict[str, tuple[Path, Path]], here: Path) -> None:
    run, program = exports[name]
    data = MARK + "\r\n".join(LINES).encode()  # the last line has no end
    (here / "in").write_bytes(data)
    assert call("translate", f"run={run}", "input=in", "output=ours", "search=greedy", "threads=1") == 0
    ours = (here / "ours").read_bytes()
    assert ours.count(b"\n") == len(LINES)
    for variables in ENVIRONMENTS:
        done = programs(program, data, variables=variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, ours, b"")
    done = programs(program, b"", str(here / "in"), str(here / "out"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (here / "out").read_bytes() == ours


@needs_both
@pytest.mark.long
@pytest.mark.parametrize("name", ["ctranslate2", "onnx"])
def test_the_programs_say_what_is_wrong(name: str, exports: dict[str, tuple[Path, Path]], here: Path) -> None:
    _, program = exports[name]
    for data in (b"eins\nf\xfcnf\nzwei\n", "eins\n".encode("utf-16")):
        done = programs(program, data, variables={"PYTHONIOENCODING": "cp1252"})
        assert done.returncode == 1
        assert re.fullmatch(rb"translate\.py: line [12]: not valid UTF-8\. Save the text as UTF-8\.\n", done.stderr)
    (here / "in").write_bytes(b"eins\n")
    for arguments, message in (
        (("missing",), b"translate.py: missing: No such file or directory.\n"),
        ((str(here / "in"), str(here / "in")), b"translate.py: input and output are the same file.\n"),
    ):
        done = programs(program, b"", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", message)
    assert (here / "in").read_bytes() == b"eins\n"


@needs_both
@pytest.mark.long
@pytest.mark.parametrize("name", ["ctranslate2", "onnx"])
def test_the_programs_answer_as_lines_come_and_end_quietly(name: str, exports: dict[str, tuple[Path, Path]]) -> None:
    program = subprocess.Popen(
        [sys.executable, exports[name][1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stderr is not None
    with program.stdin, program.stderr:
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"\n"
        program.stdout.close()
        program.stdin.write(b"rot\n")
        program.stdin.flush()
        assert program.wait(timeout=600) == 0
        assert program.stderr.read() == b""
