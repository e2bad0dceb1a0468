"""Scripts that run the product's own commands: mistakes on their command lines, and Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["reproduce.py", "de-en"], "de-en says not what it is: write KEY=de-en."),
        (["reproduce.py", "multi30k=.", "only=french"], "only=french is none of the models: m30k-de-en, "),
        (["attention_study.py", "train", "multi30k"], "multi30k says not what it is: write KEY=multi30k."),
        (["attention_study.py", "train", "multi30k=nowhere", "alignments=nowhere"], "test_2016_flickr.de.gz"),
        (["attention_study.py", "report"], "docs/attention-study/short has no records yet. Train the study first."),
        (["attention_study.py", "costs", "rounds=0"], "rounds=0: must be a whole number of at least 1."),
        (["attention_study.py", "builtin", "jobs=two"], "jobs=two: must be a whole number of at least 1."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_in_one_line(words: list[str], expected: str, tmp_path: Path) -> None:
    script, *rest = words
    line = [sys.executable, str(SCRIPTS / script), *rest]
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert expected in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_ctrl_c_is_left_to_the_command_that_runs(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what is ignored here is ignored there
    small = ["data.train_pairs=300", "tokenizer.vocabulary_size=400", f"cache={tmp_path / 'cache'}"]
    line = [sys.executable, str(SCRIPTS / "attention_study.py"), "builtin", "jobs=1", *small]
    program = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    signal.signal(signal.SIGINT, before)
    with program:
        assert program.stderr is not None
        said = ""
        while "Expected time" not in said:
            piece = program.stderr.readline()
            assert piece, said
            said += piece
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to the script and the training that it runs
        said += program.stderr.read()
    assert program.returncode == 130
    assert said.count("Stopped by SIGINT") == 1  # no other training begins
    assert "attention_study.py: interrupted; the same command goes on." in said
    assert "Traceback" not in said
