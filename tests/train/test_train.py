"""What a training leaves behind, and what its settings do."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from nmt.config.composition import compose
from nmt.config.configuration import EXTENSIBLE, INCIDENTAL
from nmt.runs.run import Run
from nmt.runs.versions import code_revision
from nmt.text.tokenizer import load_tokenizer
from nmt.training.checkpoint import load_state
from tests.align.test_align import rates
from tests.small import Capture, call, same, snapshot, translation_of, words, write_lines


def facts(run: Path) -> dict[str, object]:
    found = Run(run).facts()
    assert found["status"] == "finished"
    return found


def test_a_run_folder_holds_everything(trained: Path) -> None:
    by_other_tests = {"alignments", "evaluation"}
    assert {path.name for path in trained.iterdir()} - by_other_tests == {
        *("best.safetensors", "checksums.json", "config.yaml", "history.jsonl", "last.safetensors", "run.json"),
        *(
            "lexicon.safetensors",
            "words.safetensors",
            "overrides.json",
            "tensorboard",
            "tokenizer",
            "train.log",
            "trainer-before.pt",
        ),
        "trainer.pt",
    }
    config = OmegaConf.load(trained / "config.yaml")
    assert "${" not in (trained / "config.yaml").read_text(encoding="utf-8")
    assert (config.name, config.encoder.dropout, config.data.source) == ("numbers", 0, "de")
    assert "name='numbers'" in json.loads((trained / "overrides.json").read_text(encoding="utf-8"))
    known = facts(trained)
    assert known["finished_by"] == "steps"
    source, target = Run(trained).facts()["examples"][0]
    assert translation_of(source) == target
    assert (known["step"], known["pairs"], known["languages"]) == (200, 300, ["de", "en"])
    versions = known["versions"]
    assert isinstance(versions, dict)
    assert versions["torch"] == torch.__version__.partition("+")[0] or versions["torch"] == torch.__version__
    assert known["code"] == [code_revision()]
    assert [path.name for path in (trained / "tokenizer").iterdir()] == ["tokenizer.model"]
    assert load_state(trained / "trainer.pt")["step"] == 200
    assert next((trained / "tensorboard").iterdir()).stat().st_size > 10_000  # with pictures in it
    # What a run leaves is as readable as any other file.
    assert trained.stat().st_mode & 0o777 == trained.parent.stat().st_mode & 0o755 | 0o55


def test_the_log_has_what_was_said(trained: Path) -> None:
    log = (trained / "train.log").read_text(encoding="utf-8")
    for part in (
        "Model: gru encoder, bahdanau decoder, additive",
        "fast training",
        "step 100 | epoch",
        "Finished after 200 steps",
        "numbers input=FILE output=FILE",
    ):
        assert part in log, part
    assert re.search(r"nmt\.evaluate run=/\S+/numbers\n", log)


def test_nothing_else_is_written_and_nothing_goes_to_standard_output(here: Path, text: Path, capfd: Capture) -> None:
    before = snapshot(text)
    assert call("train", *words(text, here / "runs", "trainer.steps=2", "name=a")) == 0
    assert sorted(path.name for path in here.iterdir()) == ["runs"]
    assert sorted(path.name for path in (here / "runs").iterdir()) == ["a"]
    assert snapshot(text) == before
    out, err = capfd.readouterr()
    assert out == ""
    assert "Finished after 2 steps" in err


def test_names_are_made_from_data_wiring_and_score(here: Path, text: Path, capfd: Capture) -> None:
    line = words(text, here, "trainer.steps=1")
    assert call("train", *line) == 0
    assert call("train", *line) == 0
    assert call("train", *line, "decoder=luong", "attention/score=dot") == 0
    settings = "attention/score=additive attention.size=16 attention/score=dot"
    unused = f"decoder=none has no attention, so these settings have no effect: {settings}.\n"
    assert unused.partition(":")[0] not in capfd.readouterr().err
    assert call("train", *line, "decoder=none", "attention/score=dot") == 0
    assert unused in capfd.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == [
        "text-de-en-bahdanau-additive",
        "text-de-en-bahdanau-additive-2",
        "text-de-en-luong-dot",
        "text-de-en-none",
    ]
    assert OmegaConf.load(here / "text-de-en-bahdanau-additive-2" / "config.yaml").name.endswith("-2")


def test_the_same_seed_gives_the_same_weights(here: Path, text: Path) -> None:
    line = words(text, here, "trainer.steps=6", "model.dropout=0.2")
    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        torch.manual_seed(len(name))  # nothing hangs on the global generator
        assert call("train", *line, f"name={name}", f"seed={seed}") == 0
    assert same(here / "one" / "last.safetensors", here / "again" / "last.safetensors")
    assert not same(here / "one" / "last.safetensors", here / "other" / "last.safetensors")


def test_the_seed_changes_neither_corpus_nor_tokenizer(here: Path, text: Path) -> None:
    line = words(text, here, "trainer.steps=1", f"cache={here / 'cache'}")
    assert call("train", *line, "name=one", "seed=7") == 0
    cached = sorted(path.name for path in (here / "cache").iterdir())
    assert call("train", *line, "name=other", "seed=8") == 0
    assert sorted(path.name for path in (here / "cache").iterdir()) == cached
    tokenizers = [load_tokenizer(here / name / "tokenizer") for name in ("one", "other")]
    assert tokenizers[0].fingerprint == tokenizers[1].fingerprint


AWKWARD = "a b=c [1] {2} Straße 数 ${seed} 'x' #&;"


def test_names_and_paths_may_hold_anything(text: Path, here: Path, capfd: Capture) -> None:
    place = here / f"in {AWKWARD}"
    folder = place / "text"
    for path in text.glob("*.??"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(path.read_bytes())
    line = words(folder, place / "runs", f"name={AWKWARD}")
    assert call("train", *line, "trainer.steps=2") == 0
    run = place / "runs" / AWKWARD
    assert OmegaConf.load(run / "config.yaml").name == AWKWARD
    assert OmegaConf.load(run / "config.yaml").data.train == str(folder / "train")
    # The command that is shown goes on with it.
    again = [f"name={AWKWARD}", f"checkpoints={place / 'runs'}", "resume=true", "trainer.steps=4"]
    assert call("train", *again) == 0
    assert Run(run).facts()["step"] == 4
    assert call("translate", f"run={run}", f"input={folder / 'test.de'}", f"output={place / 'out=1.txt'}") == 0
    assert len((place / "out=1.txt").read_text(encoding="utf-8").split("\n")) == 21
    assert call("translate", f"run=[{run},{run}]", f"input={folder / 'test.de'}") == 0
    assert call("evaluate", f"run={run}", "pictures=0") == 0
    assert (run / "evaluation" / "test" / "scores.json").is_file()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("budget", "finished_by", "step"),
    [
        (["trainer.epochs=0.5"], "epochs", None),
        (["trainer.steps=3", "trainer.epochs=100", "trainer.minutes=100"], "steps", 3),
        (["trainer.minutes=0.003"], "minutes", None),
    ],
)
def test_the_first_budget_that_is_used_ends_it(
    budget: list[str], finished_by: str, step: int | None, here: Path, text: Path
) -> None:
    assert call("train", *words(text, here, "name=a", *budget)) == 0
    known = facts(here / "a")
    assert known["finished_by"] == finished_by
    history = Run(here / "a").history()
    assert history[-1]["step"] == known["step"], "the end is validated"
    if step is not None:
        assert known["step"] == step
    if finished_by == "epochs":
        epochs = float(budget[0].partition("=")[2])
        assert epochs <= history[-1]["epoch"] < epochs + 0.2
        assert len(history) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        ["trainer.accumulate=3", "trainer.scheduled_sampling=0.5", "trainer.clip_norm=0", "tokenizer.sampling=0.3"],
        ["tokenizer=bpe", "tokenizer.sampling=0.2", "tokenizer.joint=false", "model.tie_embeddings=target"],
        ["tokenizer=char", "trainer.sentences_per_batch=7", "trainer.label_smoothing=0.1", "precision=bf16"],
        ["search=greedy", "encoder=lstm", "encoder.layers=2", "decoder.layers=2", "model.dropout=0.2"],
    ],
    ids=" ".join,
)
def test_settings_work_together_with_everything_else(settings: list[str], here: Path, text: Path) -> None:
    assert call("train", *words(text, here, "name=a", "trainer.steps=3", *settings)) == 0
    assert facts(here / "a")["step"] == 3
    test = text / "test.de"
    assert call("translate", f"run={here / 'a'}", f"input={test}", "extra_length=5", f"output={here / 'out'}") == 0
    assert (here / "out").read_text(encoding="utf-8").count("\n") == 20


@pytest.mark.long
def test_guided_training_teaches_its_links(text: Path, trained: Path, here: Path, capfd: Capture) -> None:
    """Attention of its own accord goes from word n to word n; here it is told to go the other way, however cut."""

    def turned(split: str) -> list[str]:
        counts = [len(line.split()) for line in (text / f"{split}.de").read_text(encoding="utf-8").splitlines()]
        return [" ".join(f"{at}-{count - 1 - at}" for at in range(count)) for count in counts]

    named = f"data.train_links={write_lines(here / 'links', turned('train'))}"
    budget = ["trainer.steps=200", "trainer.validate_every=100", "tokenizer.sampling=0.3"]
    assert call("train", *words(text, here, "name=told", named, "trainer.guided_alignment=1", *budget)) == 0
    gold, errors = write_lines(here / "gold", turned("test")), {}
    for run in (trained, here / "told"):
        capfd.readouterr()
        assert call("align", f"run={run}", f"gold={gold}", "shift=0") == 0
        errors[run.name] = float(rates(capfd.readouterr().out)["attention, shift 0"])
    assert errors["told"] < 15 < errors["numbers"]


def test_an_existing_tokenizer_is_taken(here: Path, text: Path, trained: Path) -> None:
    model = trained / "tokenizer" / "tokenizer.model"
    assert call("train", *words(text, here, "name=a", "trainer.steps=1", f"tokenizer.model={model}")) == 0
    assert (here / "a" / "tokenizer" / "tokenizer.model").read_bytes() == model.read_bytes()


def test_every_key_that_may_change_on_resuming_exists() -> None:
    config = compose("train", [])
    for key in INCIDENTAL | EXTENSIBLE:
        holder = OmegaConf.select(config, key.rpartition(".")[0]) if "." in key else config
        assert key.rpartition(".")[2] in holder, key


def test_a_finished_run_says_what_to_delete_before_it_is_given_away(here: Path, text: Path, capfd: Capture) -> None:
    line = words(text, here / "runs", "name=a", "trainer.steps=2", "trainer.tensorboard=true")
    assert call("train", *line) == 0
    said = capfd.readouterr().err
    run = here / "runs" / "a"
    found = re.search(r"(\S+) has (\S+) MB\. (\S+) MB of it .* delete (\S+), (\S+), (\S+) and (\S+)\.\n", said)
    assert found is not None
    assert found[1] == str(run)
    assert found.groups()[3:] == ("trainer.pt", "trainer-before.pt", "last.safetensors", "tensorboard/")

    def size() -> float:
        return sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 1e6

    whole = size()
    assert float(found[2]) == pytest.approx(whole, abs=0.06)  # a digit behind the point, and a line of the log
    for name in found.groups()[3:]:
        shutil.rmtree(run / name) if name.endswith("/") else (run / name).unlink()
    assert float(found[3]) == pytest.approx(whole - size(), abs=0.06)
    (here / "in.txt").write_text("eins\n", encoding="utf-8")
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}", "device=cpu") == 0
    assert call("evaluate", f"run={run}", "device=cpu", "pictures=0") == 0
