"""The pages that teach: their Python examples and their commands run, and their pictures are there."""

import re
import shlex
from pathlib import Path

import pytest

from tests.pipeline.small import call

DOCS = Path(__file__).parents[1] / "docs"
WALK = (DOCS / "from-seq2seq-to-transformer.md").read_text(encoding="utf-8")
HEADS = (DOCS / "attention-heads.md").read_text(encoding="utf-8")
#: What makes a training of a page a matter of seconds.
BRIEF = [
    *("data.train_pairs=200", "data.valid_pairs=10", "data.test_pairs=20", "tokenizer.vocabulary_size=400"),
    *("trainer.steps=2", "trainer.samples=0", "trainer.tensorboard=false", "threads=1", "device=cpu"),
]


def commands(page: str) -> list[list[str]]:
    """The words of each command of a page, from the name of the verb on, without comments."""
    joined = re.sub(r"\\\n +", "", page)
    lines = re.findall(r"^ {4}python -m nmt\.(.*)$", joined, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def run(command: list[str]) -> None:
    """Run a command of a page, a training only briefly."""
    verb, *words = command
    words = [word for word in words if not word.startswith("trainer.epochs=")]
    assert call(verb, *words, *(BRIEF if verb == "train" else ["threads=1", "device=cpu"])) == 0, command


def given(page: list[list[str]], setting: str) -> set[str]:
    """The values of a setting in the commands of a page."""
    words = [word for command in page for word in command]
    return {word.removeprefix(f"{setting}=") for word in words if word.startswith(f"{setting}=")}


def test_the_python_examples_of_the_walk_run() -> None:
    names: dict[str, object] = {}
    examples = re.findall("```python\n(.*?)```", WALK, re.DOTALL)
    assert len(examples) > 5
    for example in examples:
        exec(compile(example, "from-seq2seq-to-transformer.md", "exec"), names)


def test_the_commands_of_the_walk_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [sentence] = re.findall('^ {4}echo "(.*)" > sentence.txt$', WALK, re.MULTILINE)
    (tmp_path / "sentence.txt").write_text(f"{sentence}\n", encoding="utf-8")
    page = commands(WALK)
    assert len(page) > 10
    for command in page:
        run(command)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == given(page, "name")
    assert all(list((tmp_path / folder).glob("*.png")) for folder in given(page, "heatmaps"))


def test_what_the_page_on_heads_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trainings first, then its commands and its Python example with the first of the runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("A man in an orange hat\n", encoding="utf-8")
    page = commands(HEADS)
    trainings = [command for command in page if command[0] == "train"]
    for command in trainings:
        run(command)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert len(names) == len(trainings) == 2
    others = [command for command in page if command[0] != "train"]
    assert len(others) > 3
    for at, (verb, *words) in enumerate(others):
        places = {
            "run=RUN": f"run=checkpoints/{names[0]}",
            "output=OUT": f"output={at}",
            "heatmaps=DIR": f"heatmaps=d{at}",
        }
        run([verb, *(places.get(word, word) for word in words)])
        assert ("heatmaps=DIR" in words) == bool(list((tmp_path / f"d{at}").glob("*.png")))
    [example] = re.findall(r"^ {4}(translator = .*?)\n\n", HEADS, re.MULTILINE | re.DOTALL)
    lines = example.replace("checkpoints/RUN", f"checkpoints/{names[0]}").replace("\n    ", "\n")
    exec(compile(f"import nmt\n{lines}", "attention-heads.md", "exec"), {})


#: The models of the walk as the study calls them.
IN_THE_STUDY = {
    "no attention": "no attention",
    "`bahdanau`, additive": "bahdanau",
    "`luong`, dot": "luong dot",
    "`luong`, general": "luong general",
    "`luong`, scaled dot, without projections": "luong scaled_dot",
}


def test_the_walk_quotes_the_study() -> None:
    """The scores of the table, and those in its prose, are those of the study's page."""
    page = (DOCS / "attention-study.md").read_text(encoding="utf-8")
    study = page.partition("## Scores on test_2016_flickr\n")[2].partition("\n## ")[0]
    scores = dict(re.findall(r"^\| ([^|]+) \| \d+ \| (\d+\.\d\d ± \d+\.\d\d) \|", study, re.MULTILINE))
    measured = WALK.partition("## What was measured")[2]
    rows = dict(re.findall(r"^\| \d+ \| (.+?) \| (\d+\.\d\d ± \d+\.\d\d) \|$", measured, re.MULTILINE))
    assert rows == {name: scores[label] for name, label in IN_THE_STUDY.items()}
    quoted = re.findall(r"\((\d+\.\d\d ± \d+\.\d\d)\)", measured)
    assert quoted == [scores["luong concat"]]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_the_pictures_are_there(page: Path) -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(<?([^)>]+)>?\)", page.read_text(encoding="utf-8"))
    assert [picture for picture in pictures if not (DOCS / picture).is_file()] == []
