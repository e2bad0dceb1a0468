"""Going on from a run: what is taken from it, what may change, what is refused, and what is measured."""

import json
import os
import signal
import struct
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from nmt.data.mixture import MixedBatches
from nmt.runs.run import Run
from nmt.text.tokenizer import load_tokenizer
from nmt.train.ancestor import choices_of_start
from nmt.training.loop import TrainingLoop
from tests.small import Capture, call, copied, pairs, same, weights, write_lines
from tests.translate.test_processes import close, ended, torchrun

#: What makes a training quick, and no sizes.
QUICK = ("trainer.tokens_per_batch=200", "trainer.label_smoothing=0", "threads=1", "device=cpu")


@pytest.fixture
def table(here: Path) -> Path:
    """New text of the same language: other sentences, and a word that the tokenizer has no letters for."""
    rows = [(source.replace("haus", "дом"), target) for source, target in pairs(160, seed=7)]
    return write_lines(here / "new.tsv", ["\t".join(row) for row in rows])


def words(run: Path, table: Path, *more: str) -> list[str]:
    """The command line that goes on from a run."""
    line = [f"start={run}", f"data.files={table}", *QUICK, "trainer.tensorboard=false", *more]
    return [*line, f"checkpoints={table.parent}", f"cache={table.parent / 'cache'}"]


def refusal(capfd: Capture, *line: str) -> str:
    """The one message of a training that does not begin."""
    capfd.readouterr()
    assert call("train", *line) == 1
    error = capfd.readouterr().err.strip()
    assert "Traceback" not in error
    return error.splitlines()[-1]


@pytest.mark.long
def test_a_run_goes_on_with_new_text(trained: Path, table: Path, capfd: Capture) -> None:
    line = words(trained, table, "name=tuned", "trainer.epochs=3", "trainer.tensorboard=true", "data.valid_pairs=100")
    assert call("train", *line) == 0
    messages, run = capfd.readouterr().err, Run(table.parent / "tuned")
    assert load_tokenizer(run.tokenizer).fingerprint == load_tokenizer(Run(trained).tokenizer).fingerprint
    theirs, config, facts = Run(trained).config(), run.config(), run.facts()
    for part in ("model", "encoder", "attention", "decoder", "context", "search"):
        assert config[part] == theirs[part]
    assert config.optimizer.lr == pytest.approx(theirs.optimizer.lr / 10)
    assert (config.schedule.warmup_steps, config.trainer.epochs, config.trainer.patience) == (20, 3, 5)
    assert facts["languages"] == ["de", "en"], "which nothing in the table says"
    assert f"The tokenizer of {trained} has no pieces for some of" in messages
    assert "the source lines (д о м)" in messages

    start = facts["start"]
    assert (start["run"], start["step"]) == (str(trained), Run(trained).best_step())
    assert run.history()[0]["step"] == 0, "no weights are worse than those at the start"
    scores = [(name, *(start[when][name] for when in ("before", "after"))) for name in ("own", "earlier")]
    [*_, best] = [entry for entry in run.history() if entry["best"]]
    assert start["after"]["earlier"].keys() == {"exact"}, "20 sentences are too few for BLEU"
    assert best["valid_bleu"] == pytest.approx(start["after"]["own"]["bleu"])
    assert run.history()[0]["valid_bleu"] == pytest.approx(start["before"]["own"]["bleu"])
    events = EventAccumulator(str(run.folder / "tensorboard")).Reload()
    for name, *both in scores:
        assert [each.value for each in events.Scalars(f"start/{name}_exact")] == pytest.approx(
            [each["exact"] for each in both]
        )
    assert "this text (100 sentences): " in messages
    assert f"text of {trained} (20 sentences, too few for BLEU): " in messages

    write_lines(table.parent / "in", ["eins zwei"])
    ensemble = f"run=[{trained},{run.folder}]"
    assert call("translate", ensemble, f"input={table.parent / 'in'}", f"output={table.parent / 'out'}") == 0
    assert call("train", *words(run.folder, table, "name=third", "trainer.steps=1")) == 0
    assert Run(table.parent / "third").config().optimizer.lr == config.optimizer.lr, "a tenth of a tenth is too little"


@pytest.mark.long
def test_the_weights_are_those_of_the_run(trained: Path, table: Path, capfd: Capture) -> None:
    """Choices without a shape may change; new parameters start as in a new run, and are listed."""
    line = ["trainer.steps=1", "optimizer.lr=0", "trainer.average=none", "model.dropout=0.2", "attention.coverage=true"]
    line += ["attention.coverage_loss=0.5", "attention/window=local_p", "attention/normaliser=sparsemax"]
    assert call("train", *words(trained, table, "name=same", *line)) == 0
    before, after = weights(trained / "best.safetensors"), weights(table.parent / "same" / "last.safetensors")
    assert all(after[name].equal(value) for name, value in before.items())
    assert after.keys() - before.keys()
    messages, config = capfd.readouterr().err, Run(table.parent / "same").config()
    [listed] = [row for row in messages.splitlines() if row.startswith("New parameters")]
    assert all(name in listed for name in after.keys() - before.keys())
    assert config.encoder.dropout == config.decoder.dropout == 0.2, "which follow from model.dropout"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["encoder.size=18"], ["encoder.size=18 changes the shape of encoder.", "[48, 32]", "[54, 32] here"]),
        (["encoder=lstm"], ["encoder=lstm changes the shape of encoder."]),
        (["model.embedding_size=16", "seed=2"], ["model.embedding_size=16 changes the shape of source_embedding."]),
        (["tokenizer.vocabulary_size=300"], ["tokenizer.vocabulary_size=300 cannot be set"]),
        (["tokenizer=bpe"], ["tokenizer=bpe cannot be set"]),
        (["experiment=xu2015_hard"], ["experiment=xu2015_hard cannot be set"]),
        (["start_mix=1"], ["start_mix=1: must be at least 0 and less than 1"]),
        (["start=", "start_mix=0.5"], ["start= has no value"]),
        (["start=nowhere"], ["There is no run nowhere."]),
        (
            ["start_mix=0.5", "start_data=no.tsv"],
            ["start_data=no.tsv: the text of", "is data=text. Give 'start_data=[TRAIN,VALID]'"],
        ),
        (["data.source=en", "data.target=de"], ["translates from de to en, and this text is en to de"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_fit_is_refused(
    line: list[str], parts: list[str], trained: Path, table: Path, capfd: Capture
) -> None:
    message = refusal(capfd, *words(trained, table, "name=no", *line))
    assert [part for part in parts if part not in message] == []
    assert not (table.parent / "no").exists()


@pytest.mark.parametrize("word", ["start_mix=0.5", "start_data=run"])
def test_a_share_of_no_run_is_refused(word: str, here: Path, capfd: Capture) -> None:
    assert f"{word} needs a run to go on from" in refusal(capfd, word)


def test_a_new_run_needs_validation_pairs(table: Path, capfd: Capture) -> None:
    message = refusal(capfd, f"data.files={table}", "data.valid_pairs=0", "name=no", f"checkpoints={table.parent}")
    assert "data.valid_pairs=0: without validation pairs, training needs the validation text of a run" in message
    assert not (table.parent / "no").exists()


@pytest.mark.long
def test_few_pairs_are_all_learnt(trained: Path, table: Path, capfd: Capture) -> None:
    """Validation is that of the other run, and no score is made of a handful of sentences."""
    folder = table.parent
    few = write_lines(folder / "few.tsv", ["eins haus\tone building", "zwei haus\ttwo building"])
    line = words(trained, few, "trainer.validate_every=20", "trainer.epochs=25")
    with pytest.MonkeyPatch.context() as patch:
        stop_at(10, patch)
        assert call("train", *line, "name=few") == 143
    capfd.readouterr()
    assert call("train", "name=few", f"checkpoints={folder}", "resume=true") == 0
    messages, run = capfd.readouterr().err, Run(folder / "few")
    facts = run.facts()
    assert facts["pairs"] == 2
    assert facts["text"] == {**facts["text"], "valid": Run(trained).facts()["text"]["valid"]}
    assert facts["text"].keys() == {"train", "valid"}
    assert f"none is held out: validation is on the validation text of {trained}, 20 pairs" in messages
    assert "this text (2 pairs that were learnt): 0 translated as in the text before, " in messages
    assert "before, BLEU" not in messages
    assert [(entry["step"], entry["best"]) for entry in run.history()] == [(0, 1), (20, 1), (25, 1)]
    assert "nmt.evaluate" not in messages, "there is no test set"
    assert "best so far" not in messages, "the weights at the end are kept"
    assert call("train", *words(run.folder, few, "name=again", "trainer.steps=1")) == 0
    assert Run(folder / "again").facts()["text"]["valid"] == facts["text"]["valid"], "that of the first run"


@pytest.mark.long
def test_a_copied_run_is_told_where_its_text_is(
    trained: Path, table: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(table.parent / "state"))
    mixed = words(trained, table, "start_mix=0.5", "trainer.steps=1")
    message = refusal(capfd, *mixed, "name=no")
    assert "Say where this text is now: 'start_data=[TRAIN,VALID]', the prefixes of its files" in message
    own = Run(trained).config().data
    for name, place in (("run", "run"), ("moved", f"[{own.train},{own.valid}]")):
        assert call("train", *mixed, f"name={name}", f"start_data={place}") == 0
        start = Run(table.parent / name).facts()["start"]
        assert start["text"] == {side: Run(trained).facts()["text"][side] for side in ("train", "valid")}
        assert start["after"].keys() == {"own", "earlier"}
    missing = refusal(capfd, *mixed, "name=no", "start_data=[]")
    assert "start_data=[]: the text of" in missing
    for side, lines in zip(("de", "en"), zip(*pairs(90, seed=9), strict=True), strict=True):
        write_lines(table.parent / f"other.{side}", lines)
    other = f"[{table.parent / 'other'},{table.parent / 'other'}]"
    capfd.readouterr()
    assert call("train", *mixed, "name=other", f"start_data={other}") == 0
    assert f"start_data={other} is not the text that {trained} was trained on." in capfd.readouterr().err
    assert Run(table.parent / "other").facts()["start"]["after"].keys() == {"own"}, "it may have been trained on"
    assert call("train", "name=other", f"checkpoints={table.parent}", "resume=true", "trainer.steps=2") == 0


def facts_with(run: Path, **facts: object) -> None:
    path = run / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **facts}), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda run: facts_with(run, status="interrupted"), "is not finished (status: interrupted). Finish it: "),
        (lambda run: facts_with(run, format=99), "has format 99 in run.json"),
        (lambda run: (run / "best.safetensors").unlink(), "best.safetensors is missing"),
        (
            lambda run: (run / "best.safetensors").write_bytes(struct.pack("<Q", 9) + b"x"),
            "best.safetensors is damaged",
        ),
        (lambda run: (run / "tokenizer" / "tokenizer.model").write_bytes(b"x"), "tokenizer.model is damaged"),
        (lambda run: (run / "config.yaml").write_text("choices: 1", encoding="utf-8"), "config.yaml is damaged"),
    ],
)
def test_a_run_that_is_not_whole_is_refused(
    spoil: object, part: str, trained: Path, table: Path, capfd: Capture
) -> None:
    run = copied(trained, table.parent)
    assert callable(spoil)
    spoil(run)
    assert part in refusal(capfd, *words(run, table, "name=no"))
    assert not (table.parent / "no").exists()


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends this process a signal as soon as `step` updates are made."""
    update = TrainingLoop._update

    def then_stop(self: TrainingLoop, *arguments: object) -> None:
        update(self, *arguments)  # type: ignore[arg-type]
        if self.counters.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(TrainingLoop, "_update", then_stop)


@pytest.mark.long
@pytest.mark.parametrize("mix", ["start_mix=0", "start_mix=0.5"])
def test_a_resumed_run_is_exact_without_the_other_run(
    mix: str, trained: Path, table: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """With start_mix it needs config.yaml, overrides.json and run.json of the other run, and its training text."""
    ancestor, folder = copied(trained, table.parent), table.parent
    line = words(ancestor, table, mix, "trainer.epochs=2", "model.dropout=0.2", "tokenizer.sampling=0.3")
    assert call("train", *line, "name=whole") == 0
    with monkeypatch.context() as patch:
        stop_at(3, patch)
        assert call("train", *line, "name=parted") == 143
    for path in ancestor.iterdir():
        if path.is_file() and (mix == "start_mix=0" or path.name not in ("config.yaml", "overrides.json", "run.json")):
            path.unlink()
    assert call("train", "name=parted", f"checkpoints={folder}", "resume=true") == 0
    for name in ("best.safetensors", "last.safetensors"):
        assert same(folder / "whole" / name, folder / "parted" / name)
    assert len(Run(folder / "whole").history()) == len(Run(folder / "parted").history())
    if mix == "start_mix=0.5":
        (ancestor / "run.json").unlink()
        message = refusal(capfd, "name=parted", f"checkpoints={folder}", "resume=true", "trainer.epochs=9")
        assert "run.json is missing" in message


@pytest.mark.long
def test_text_of_the_other_run_is_in_every_batch(trained: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares, batch_of = [], MixedBatches._batch

    def noticed(self: MixedBatches, *arguments: object) -> object:
        batch = batch_of(self, *arguments)  # type: ignore[arg-type]
        shares.append((batch.rows >= self._first_rows).float().mean())
        return batch

    monkeypatch.setattr(MixedBatches, "_batch", noticed)
    assert call("train", *words(trained, table, "name=mixed", "start_mix=0.5", "trainer.epochs=2")) == 0
    facts = Run(table.parent / "mixed").facts()
    assert torch.stack(shares).mean() == pytest.approx(0.5, abs=0.1)
    assert facts["pairs"] == 160, "of its own text"
    assert facts["start"]["text"].keys() == {"train", "valid"}


def test_the_text_of_a_stranger_is_not_read(
    trained: Path, table: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(table.parent / "state"))
    assert call("train", *words(trained, table, "name=of-stranger", "trainer.steps=1")) == 0
    assert "was made or changed elsewhere, so its data settings are not used" in capfd.readouterr().err
    assert Run(table.parent / "of-stranger").facts()["start"]["after"] == {"own": {"exact": pytest.approx(50, abs=50)}}
    message = refusal(capfd, *words(trained, table, "name=no", "start_mix=0.5"))
    assert message.startswith(f"nmt.train: start_mix=0.5 needs the training text of {trained}: ")
    # Nor does a stranger's run name the run whose text a resumed training reads.
    monkeypatch.setenv("XDG_STATE_HOME", str(table.parent / "another"))
    again = ["name=of-stranger", f"checkpoints={table.parent}", "resume=true", "trainer.steps=2", f"data.files={table}"]
    assert "was made or changed elsewhere" in refusal(capfd, *again)


@pytest.mark.long
def test_several_processes_go_on_as_one(trained: Path, table: Path) -> None:
    line = words(trained, table, "start_mix=0.5", "trainer.epochs=3")
    assert call("train", *line, "name=one", "trainer.accumulate=2") == 0
    status, messages = ended(torchrun(2, [*line, "name=several"]))
    assert status == 0, messages
    assert close(table.parent / "one", table.parent / "several")
    assert messages.count(f"text of {trained} (20 sentences") == 1


@pytest.mark.long
def test_a_sweep_goes_on_from_several_runs(trained: Path, table: Path, capfd: Capture) -> None:
    other = copied(trained, table.parent / "others")
    line = [*words(trained, table, "name=s", "dry_run=true")][1:]
    capfd.readouterr()
    assert call("train", "-m", *line, f"start={trained},{other}", "attention.coverage=true") == 0
    commands = capfd.readouterr().out.splitlines()
    assert len(commands) == 2
    assert [str(run) in command for run, command in zip((trained, other), commands, strict=True)] == [True, True]
    assert call("train", "-m", *line, f"start={trained},nowhere") == 1
    assert "There is no run nowhere" in capfd.readouterr().err
    assert call("train", "-m", *line, f"start={trained}", "encoder.size=16,18") == 1
    assert "encoder.size=18 changes the shape of encoder." in capfd.readouterr().err


def test_the_choices_of_the_run_stand_before_the_command_line(trained: Path) -> None:
    assert "decoder=bahdanau" in choices_of_start([f"start='{trained}'"])
    changed = choices_of_start([f"start='{trained}'", "decoder=transformer", "attention/score=dot"])
    assert [word for word in changed if word.startswith(("decoder", "attention/score="))] == []
    assert choices_of_start(["start=nowhere", "resume=true"]) == []
