"""Two text files, or one with tabs: all that a person has to know."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig

from nmt.build.parts import build_source
from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.data.sources import UserFiles
from nmt.runs.run import Run
from nmt.train.kept_text import examples
from nmt.train.recipe import check_model, fit_to_text
from tests.small import Capture, call, pairs, write_lines

pytestmark = pytest.mark.long


ROWS = pairs(120)
#: What keeps the test short; sizes and vocabulary are left to the tool.
SHORT = ["trainer.epochs=null", "trainer.steps=3", "trainer.tensorboard=false", "threads=1", "device=cpu"]


def two(folder: Path) -> str:
    write_lines(folder / "german.txt", [source for source, _ in ROWS])
    write_lines(folder / "english.txt", [target for _, target in ROWS])
    return f"[{folder / 'german.txt'},{folder / 'english.txt'}]"


def unnamed(folder: Path) -> str:
    for name, side in (("left.txt", 0), ("right.txt", 1)):
        write_lines(folder / name, [row[side] for row in ROWS])
    return f"[{folder / 'left.txt'},{folder / 'right.txt'}]"


def one(folder: Path) -> str:
    return str(write_lines(folder / "de-en.tsv", [f"{source}\t{target}\tnote" for source, target in ROWS]))


def awkward(folder: Path) -> str:
    place = folder / "Straße [1] = 数"
    place.mkdir()
    return one(place)


@pytest.mark.parametrize(
    ("files", "stem"),
    [
        (two, "files-de-en"),
        (unnamed, "left-right"),
        (awkward, "files-de-en"),
    ],
    ids=["two", "unnamed", "awkward"],
)
def test_files_alone_train_a_run(
    files: Callable[[Path], str], stem: str, here: Path, tmp_path_factory: pytest.TempPathFactory, capfd: Capture
) -> None:
    assert call("train", f"data.files={files(tmp_path_factory.mktemp('mine'))}", *SHORT) == 0
    run = Run(here / "checkpoints" / f"{stem}-luong-general")
    out, err = capfd.readouterr()
    assert out == ""
    # What was chosen, and why, before it starts; then how long it will take; then how it went.
    order = [
        "a vocabulary of 500 pieces",
        "embeddings and states of 64",
        "dropout 0.5 (model.dropout)",
        "subword regularisation on",
        "120 pairs",
        "Held out:",
        "Tokenizer:",
        "Expected time: about",
        "Finished after 3 steps",
        "Too few lines:",
        "The training ended at its limit of steps.",
        "Next:",
        f"python -m nmt.evaluate run={run.folder.relative_to(here)}",
    ]
    places = [err.find(part) for part in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)
    config = run.config()
    assert (config.model.embedding_size, config.tokenizer.sampling, config.trainer.steps) == (64, 0.3, 3)
    assert run.facts()["languages"] == (["source", "target"] if stem == "left-right" else ["de", "en"])
    assert sorted(path.name for path in here.iterdir()) == ["checkpoints", "data"]
    # Its own test set is scored, its lines are translated.
    write_lines(here / "in.txt", ["eins zwei", ""])
    folder = f"run={run.folder}"
    assert call("translate", folder, "input=in.txt", "output=out.txt", "extra_length=3") == 0
    assert (here / "out.txt").read_text(encoding="utf-8").count("\n") == 2
    assert call("evaluate", folder, "pictures=0", "extra_length=3") == 0
    assert (run.folder / "evaluation" / "test" / "hypotheses.txt").read_text(encoding="utf-8").count("\n") == 12


def test_every_choice_can_be_overridden(here: Path, capfd: Capture) -> None:
    line = [f"data.files={one(here)}", *SHORT, "name=mine", "encoder.size=20", "decoder.size=40", "model.dropout=0.1"]
    line += ["tokenizer=char", "data.valid_pairs=7", "data.test_pairs=0", "model.embedding_size=24"]
    line += ["attention.size=12"]
    assert call("train", *line) == 0
    config = Run(here / "checkpoints" / "mine").config()
    assert (config.encoder.size, config.decoder.size, config.model.dropout) == (20, 40, 0.1)
    tokenizer = config.tokenizer
    assert (tokenizer.model_type, tokenizer.sampling, tokenizer.vocabulary_size) == ("char", 0, 1000)
    assert "tokenizer.sampling" not in capfd.readouterr().err
    # What the tool chose is not a difference when the run goes on.
    assert call("train", "name=mine", "resume=true", "trainer.steps=5") == 0
    assert Run(here / "checkpoints" / "mine").facts()["step"] == 5
    assert "Next:" in capfd.readouterr().err
    assert call("evaluate", "run=checkpoints/mine") == 1
    assert "has no test split" in capfd.readouterr().err
    assert call("train", "name=mine", "resume=true", "encoder.size=64") == 1
    assert "encoder.size: 20 -> 64" in capfd.readouterr().err


def test_evaluating_on_files_that_have_changed_since_is_refused(here: Path, capfd: Capture) -> None:
    """The held-out pairs would be drawn anew, and what is test now may have been trained on."""
    assert call("train", f"data.files={two(here)}", "name=x", *SHORT) == 0
    run = f"run={here / 'checkpoints' / 'x'}"
    assert call("evaluate", run, "pictures=0") == 0
    for name in ("german.txt", "english.txt"):
        with (here / name).open("a", encoding="utf-8") as file:
            file.writelines(f"{name} {number}\n" for number in range(60))
    capfd.readouterr()
    assert call("evaluate", run) == 1
    assert "The text of test has changed since" in capfd.readouterr().err


def fitted(here: Path, *words: str) -> DictConfig:
    """The configuration that the tool makes of two files and a line."""
    overrides = quote([f"data.files={two(here)}", *words])
    config = compose("train", overrides)
    source = build_source(config)
    assert isinstance(source, UserFiles)
    return fit_to_text(config, overrides, source)[0]


def test_what_is_chosen_leaves_what_was_named_as_it_is(here: Path) -> None:
    paper = fitted(here, "experiment=bahdanau2015_rnnsearch50")
    assert (paper.model.embedding_size, paper.encoder.size, paper.decoder.size) == (620, 1000, 1000)
    few, small = fitted(here), fitted(here, "experiment=small_text")
    assert (small.trainer.r_drop, small.model.dropout) == (5, 0.5), "a preset without dropout fits it to the text"
    assert (small.encoder.size, small.decoder.size) == (few.encoder.size, few.decoder.size), "and the sizes"
    luong = fitted(here, "decoder=luong", "attention/score=dot")
    assert luong.decoder.size == 2 * luong.encoder.size, "so that any score fits"
    check_model(luong)
    assert fitted(here, "tokenizer=bpe").tokenizer.sampling == 0.1
    assert fitted(here, "encoder.size=48").encoder.size == 48


def test_an_endless_line_makes_no_small_text_a_large_one(here: Path) -> None:
    files = two(here)
    for name in ("german.txt", "english.txt"):
        with (here / name).open("a", encoding="utf-8") as file:
            file.write("word " * 100_000 + "\n")
    overrides = [f"data.files={files}"]
    source = UserFiles([str(here / name) for name in ("german.txt", "english.txt")], test_pairs=0)
    chosen = fit_to_text(compose("train", overrides), overrides, source)[0]
    assert (chosen.tokenizer.vocabulary_size, chosen.model.dropout) == (500, 0.5)


def test_examples_of_the_page_are_short_on_both_sides() -> None:
    """Of a pair that is misaligned, the target may be as long as a page."""
    lines = ["eins zwei drei", "eins zwei vier", "eins", "eins\tzwei drei vier"]
    assert examples(lines, ["one two three", "one " * 1500, "one", "one two"]) == [["eins zwei drei", "one two three"]]
