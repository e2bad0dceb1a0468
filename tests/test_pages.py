"""The pages that teach: their Python examples and their commands run, and their pictures are there."""

import re
import shlex
from pathlib import Path

import pytest

from tests.pipeline.small import call

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "from-seq2seq-to-transformer.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line) for line in re.findall("^ {4}(python -m nmt.*)$", TEXT.replace("\\\n     ", ""), re.MULTILINE)
]
#: What makes a training of the page a matter of seconds.
BRIEF = [
    *("data.train_pairs=200", "data.valid_pairs=10", "data.test_pairs=10", "tokenizer.vocabulary_size=400"),
    *("trainer.steps=2", "trainer.samples=0", "trainer.tensorboard=false", "threads=1", "device=cpu"),
]


def test_the_python_examples_run() -> None:
    names: dict[str, object] = {}
    examples = re.findall("```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(examples) > 5
    for example in examples:
        exec(compile(example, PAGE.name, "exec"), names)


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [sentence] = re.findall('^ {4}echo "(.*)" > sentence.txt$', TEXT, re.MULTILINE)
    (tmp_path / "sentence.txt").write_text(f"{sentence}\n", encoding="utf-8")
    assert len(COMMANDS) > 10
    for _, _, verb, *words in COMMANDS:
        words = [word for word in words if not word.startswith("trainer.epochs=")]
        more = BRIEF if verb == "nmt.train" else ["threads=1", "device=cpu"]
        assert call(verb.removeprefix("nmt."), *words, *more) == 0, words
    trained = {word for command in COMMANDS for word in command if word.startswith("name=")}
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {word[5:] for word in trained}
    drawn = {word[9:] for command in COMMANDS for word in command if word.startswith("heatmaps=")}
    assert all(list((tmp_path / folder).glob("*.png")) for folder in drawn)


def test_the_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    assert pictures
    assert [picture for picture in pictures if not (DOCS / picture).is_file()] == []
