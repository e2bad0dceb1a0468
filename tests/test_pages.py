"""The pages for readers: their commands and examples run.

A command that cannot run here is in `ELSEWHERE`, with the reason. It is composed where it is one of nmt's.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page_commands import PAGES, ROOT, Command, blocks, commands
from tests.small import QUICK, call, environment, write_lines, write_text

pytestmark = pytest.mark.long


DOCS = ROOT / "docs"
WALK, HEADS = DOCS / "from-seq2seq-to-transformer.md", DOCS / "attention-heads.md"
#: Commands that no test runs, by what is in them, and why.
ELSEWHERE = {
    "make ": "installs the environment",
    "pip install": "installs the environment",
    "python -m venv": "installs the environment",
    "source .venv": "installs the environment",
    "data=multi30k": "needs a network",
    "data=hub": "needs a network",
    "data.root=": "needs a corpus and hours",
    "systems=": "needs another program; tests/compare/test_systems.py plays one",
    "hypotheses=": "needs another program; tests/evaluate/test_hypotheses.py plays one",
    "metrics=": "needs another program; tests/compare/test_metric_commands.py has one",
    "experiment=": "needs a corpus and hours",
    "checkpoints/classroom": "needs the three models of a lesson",
    "checkpoints/there": "needs a model of each direction; tests/align has small ones",
    "data.source=ja": "needs a corpus and an hour",
    "data.target=zh_Hans": "trains for minutes, with figures of its own",
    "python scripts/": "measures for hours on an idle machine",
    "python -m pytest": "runs tests",
    "pre-commit": "installs a hook of Git",
    ".ci/run": "installs the environment",
    **dict.fromkeys(
        ("python -m nmt.serve", "curl", "torchrun", "sbatch"), "tests/test_page_programs.py runs it beside the others"
    ),
    "sweep.launcher=slurm": "needs a Slurm queue; tests/train/test_cluster.py runs jobs without one",
    "device=cuda": "needs a GPU",
}
#: Pages whose commands are run in their order, in one folder.
TUTORIALS = [
    "README.md",
    "index.md",
    "own-data.md",
    "recipes.md",
    "choosing-an-attention.md",
    "comparing.md",
    "reading-the-pictures.md",
    "documents.md",
    "glossary.md",
    "translation-json.md",
    "at-work.md",
    "corrections.md",
    "reliability.md",
    "CONTRIBUTING.md",
]
#: Pages whose commands another file of tests runs.
OWN_TESTS = {"adding-a-part.md": "tests/test_adding.py"}
#: What makes a training of a page a matter of seconds.
BRIEF = [
    *("trainer.steps=2", "trainer.samples=0", "trainer.tensorboard=false", "threads=1", "device=cpu"),
    "tokenizer.vocabulary_size=400",
]
#: The same for the built-in corpus.
FEW = ["data.train_pairs=200", "data.valid_pairs=10", "data.test_pairs=20"]
FEW_DOCUMENTS = ["data.train_documents=40", "data.valid_documents=4", "data.test_documents=6"]
SMALL = ["model.embedding_size=32", "encoder.size=32", "decoder.size=64", "attention.size=32"]


def elsewhere(command: Command) -> str:
    """Why no test runs a command; "" if one does."""
    return next((reason for part, reason in ELSEWHERE.items() if part in command.line), "")


def shortened(words: list[str]) -> list[str]:
    """The words of a training, made brief: a setting that a page gives for its length is left out."""
    own = [word for word in words if not word.startswith(("trainer.epochs=", "jobs="))]
    if any(word in ("--help", "--help=all", "--cfg", "resume=true", "resume=auto") for word in own):
        return own
    builtin = not any(word.startswith(("data=", "data.files=")) for word in own)
    changed = {word.partition("=")[0] for word in own}
    starts = any(word.startswith("start=") for word in own)  # with the tokenizer of another run
    more = [
        *(BRIEF[:-1] if starts else BRIEF),
        *(FEW if builtin else []),
        *(FEW_DOCUMENTS if "data=documents" in own else []),
    ]
    return [*own, *(word for word in more if word.partition("=")[0] not in changed)]


def run(verb: str, words: list[str]) -> None:
    """Run a command of a page, a training only briefly."""
    more = {"train": [], "export": [], "check": [], "compare": QUICK}.get(verb, ["threads=1", "device=cpu"])
    if verb == "evaluate":
        more = [*more, *(["pictures=2"] if not any(word.startswith("pictures=") for word in words) else [])]
    words = shortened(words) if verb == "train" else words
    assert call(verb, *words, *more) == 0, (verb, words)


def given(page: list[Command], setting: str) -> set[str]:
    """The values of a setting in the commands of a page."""
    words = [word for command in page for word in command.words]
    return {word.removeprefix(f"{setting}=") for word in words if word.startswith(f"{setting}=")}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that have learnt nothing: `recurrent` and `transformer`."""
    folder = tmp_path_factory.mktemp("tiny")
    both = ["encoder=transformer", "decoder=transformer", "encoder.layers=2", "decoder.layers=2", SMALL[0]]
    for name, words in (("recurrent", SMALL), ("transformer", both)):
        assert call("train", f"name={name}", f"checkpoints={folder}", *shortened(words)) == 0
    return folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep of the pages: two scores, two seeds."""
    folder = tmp_path_factory.mktemp("sweep") / "SWEEP"
    for score in ("additive", "general"):
        for seed in (1, 2):
            words = [f"name={score}-{seed}", f"checkpoints={folder}", f"attention/score={score}", f"seed={seed}"]
            assert call("train", *shortened([*words, *SMALL])) == 0
    return folder


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages call by name, to stand in. Empty lines end documents."""
    monkeypatch.chdir(tmp_path)
    text = write_text(tmp_path / "DIR")
    for path in text.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        write_lines(path, [word for at, line in enumerate(lines) for word in (line, *([""] if at % 5 == 4 else []))])
    for name, stem in (("train", "german english"), ("valid", "valid.de valid.en"), ("test", "test.de test.en")):
        for language, target in zip(("de", "en"), stem.split(), strict=True):
            shutil.copy(text / f"{name}.{language}", tmp_path / (target if "." in target else f"{target}.txt"))
    sides = [(tmp_path / f"{name}.txt").read_text("utf-8").splitlines() for name in ("german", "english")]
    write_lines(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in zip(*sides, strict=True) if all(pair)])
    write_lines(tmp_path / "terms.tsv", ["June\tJuly"])
    for name in ("FILE", "new.txt", "book.txt"):
        write_lines(tmp_path / name, ["June 6, 1987", "12 kilograms and 63.5%"])
    write_lines(tmp_path / "page.md", ["# June 6, *1987*"])
    shutil.copy(ROOT / "docs" / "at-work" / "report.docx", tmp_path)
    write_lines(tmp_path / "film.srt", ["1", "00:00:01,000 --> 00:00:02,000", "June 6, 1987"])
    return tmp_path


def prepared(command: Command, desk: Path, tiny: Path) -> list[str]:
    """The words of a command, whose runs are there: an untrained one takes the place of one that took hours."""
    kind = "transformer" if command.verb == "export" else "recurrent"
    words = [word.replace("checkpoints/m30k", "checkpoints/exported") if kind == "transformer" else word
             for word in command.words[3:]]  # fmt: skip
    for name in re.findall(r"checkpoints/((?:[\w-]+/)*[\w-]+)(?=[\],\s]|$)", " ".join(words)):
        if not (desk / "checkpoints" / name).exists():
            shutil.copytree(tiny / kind, desk / "checkpoints" / name)
    named = [word.removeprefix("name=") for word in words if word.startswith("name=")]
    if named and {"resume=true", "resume=auto"} & {*words} and not (desk / "checkpoints" / named[0]).exists():
        shutil.copytree(tiny / kind, desk / "checkpoints" / named[0])
    # A page may give the same place twice, as a reader does in another folder.
    if command.verb == "export":
        words = [word.replace("output=DIR", "output=exported") for word in words]
    words = [word.replace("GROUP=NAME", "attention/score=dot") for word in words]
    return [word.replace("output=FILE", "output=translations") for word in words]


def planned(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The commands of a sweep, which prints them instead of training."""
    capsys.readouterr()
    assert (
        call("train", *(word for word in words if word != "dry_run=true"), "dry_run=true", "checkpoints=planned") == 0
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if " -m nmt.train " in line]  # a job has more
    runs = 1
    for word in words:
        runs *= word.count(",") + 1
    assert len(lines) == runs
    return lines


def with_this_python() -> dict[str, str]:
    """The environment in which a shell finds this Python."""
    return {**environment(), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_commands_of_a_tutorial_run(
    name: str, desk: Path, tiny: Path, swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = next(path for path in PAGES if path.name == name)
    (desk / "checkpoints").mkdir()
    shutil.copytree(swept, desk / "checkpoints" / "SWEEP")
    ran = 0
    for command in commands(page):
        if elsewhere(command):
            continue
        words = prepared(command, desk, tiny)
        if command.verb and "-m" in words:
            assert planned(words, capsys)
        elif command.verb:
            run(command.verb, words)
        else:
            subprocess.run(["bash", "-ec", command.line], env=with_this_python(), check=True, timeout=600)
        ran += 1
    assert ran
    assert all(list((desk / folder).glob("*.png")) for folder in given(commands(page), "heatmaps"))


def test_every_command_is_run_or_listed_with_a_reason() -> None:
    run_here = {*TUTORIALS, WALK.name, HEADS.name, *OWN_TESTS}
    left = [command for page in PAGES if page.name not in run_here for command in commands(page)]
    assert [command for command in left if not elsewhere(command)] == [], "run it, or list it in ELSEWHERE"
    assert run_here <= {page.name for page in PAGES}
    assert [page for page, test in OWN_TESTS.items() if page not in (ROOT / test).read_text(encoding="utf-8")] == []


def listed() -> Iterator[Command]:
    """The commands that no test runs, without those that leave out words."""
    for page in PAGES:
        yield from (command for command in commands(page) if elsewhere(command) and " ... " not in command.line)


@pytest.mark.parametrize(
    "command", [one for one in listed() if one.verb and one.verb != "serve"], ids=lambda command: command.line[:60]
)
def test_a_command_that_is_not_run_composes(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.strip("[]") if not word.startswith("data.") else word for word in command.words[3:]]
    if "-m" in words:
        assert planned(words, capsys)
    else:
        assert call(command.verb, *words, "--cfg") == 0
        assert ":" in capsys.readouterr().out


def test_the_python_examples_of_the_walk_run() -> None:
    names: dict[str, object] = {}
    examples = blocks(WALK.read_text(encoding="utf-8"), "python")
    assert len(examples) > 5
    for example in examples:
        exec(compile(example, WALK.name, "exec"), names)


def test_the_commands_of_the_walk_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    echo, *page = commands(WALK)
    (tmp_path / echo.words[-1]).write_text(f"{echo.words[1]}\n", encoding="utf-8")
    assert len(page) > 10
    for command in page:
        run(command.verb, command.words[3:])
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == given(page, "name")
    assert all(list((tmp_path / folder).glob("*.png")) for folder in given(page, "heatmaps"))


def test_what_the_page_on_heads_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trainings first, then its commands and its Python example with the first of the runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("A man in an orange hat\n", encoding="utf-8")
    page = commands(HEADS)
    trainings = [command for command in page if command.verb == "train"]
    for command in trainings:
        run("train", command.words[3:])
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert len(names) == len(trainings) == 2
    others = [command for command in page if command.verb != "train"]
    assert len(others) > 3
    for at, command in enumerate(others):
        places = {
            "run=RUN": f"run=checkpoints/{names[0]}",
            "output=OUT": f"output={at}",
            "heatmaps=DIR": f"heatmaps=d{at}",
        }
        words = command.words[3:]
        run(command.verb, [places.get(word, word) for word in words])
        assert ("heatmaps=DIR" in words) == bool(list((tmp_path / f"d{at}").glob("*.png")))
    text = HEADS.read_text(encoding="utf-8")
    [example] = re.findall(r"^ {4}(translator = .*?)\n\n", text, re.MULTILINE | re.DOTALL)
    lines = example.replace("checkpoints/RUN", f"checkpoints/{names[0]}").replace("\n    ", "\n")
    exec(compile(f"import nmt\n{lines}", HEADS.name, "exec"), {})


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_the_pictures_are_there(page: Path) -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(<?([^)>]+)>?\)", page.read_text(encoding="utf-8"))
    assert [picture for picture in pictures if not (DOCS / picture).is_file()] == []
