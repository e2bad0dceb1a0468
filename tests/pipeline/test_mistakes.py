"""What a user's mistakes get: one message that names the thing and the cure, status 1, and nothing half-written."""

import contextlib
import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from nmt import files
from nmt.compat import CLASSES
from nmt.errors import UserError
from nmt.runs import Run
from tests.pipeline.small import call, copied, environment, same, snapshot, words, write_lines, write_text

Capture = pytest.CaptureFixture[str]


def refusal(capfd: Capture, folder: Path, verb: str, *line: str) -> str:
    """The one message that a command line gets; nothing may have changed in the folder."""
    before = snapshot(folder)
    capfd.readouterr()
    assert call(verb, *line) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    # Notes on the text may come before it.
    message = err[err.index(f"nmt.{verb}: ") :]
    assert message.count(f"nmt.{verb}: ") == 1
    assert message.endswith("\n")
    assert snapshot(folder) == before
    return message


# Training


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (["data.train=nowhere/train"], ["no folder nowhere", "train.de"]),
        (["data.source=dee"], ["There is no train.dee and no train.dee.gz", "train.de"]),
        (["attention/score=dot"], ["decoder's state has 32", "encoder's 20", "decoder.size=20"]),
        (["attention/score=aditive"], ["There is no attention/score=aditive", "'additive'"]),
        (["atention/score=dot"], ["'attention/score'"]),
        (["encodr=lstm"], ["'encodr'", "'encoder'"]),
        (["encoder.szie=3"], ["'encoder.szie'", "'encoder.size'"]),
        (["trainer.stpes=3"], ["'trainer.stpes'", "'trainer.steps'"]),
        (["trainer.steps=many"], ["trainer.steps=many", "a whole number, at least 1, or null"]),
        (["trainer.steps=2.5"], ["a whole number, at least 1, or null"]),
        (["trainer.minutes=soon"], ["a number, greater than 0, or null"]),
        (["trainer.steps=0"], ["trainer.steps=0: must be at least 1, or null"]),
        (["trainer.epochs=inf"], ["trainer.epochs=inf: must be a finite number"]),
        (["trainer.minutes=inf"], ["trainer.minutes=inf: must be a finite number"]),
        (["seed=-1"], ["seed=-1: must be at least 0"]),
        (["attention=dot"], ["dot is a choice of attention/score: write attention/score=dot"]),
        (["score=dot"], ["longer name: attention/score=dot"]),
        (["readout=tanh"], ["longer name: decoder/readout=tanh"]),
        (["attention.radius=3"], ["'attention.window.radius'"]),
        (["data.file=[a,b]"], ["'data.files'"]),
        (["trainer.steps=null"], ["There is no budget", "trainer.steps, trainer.epochs or trainer.minutes"]),
        (["trainer.validate_every=0"], ["trainer.validate_every=0: must be at least 1, or null"]),
        (["trainer.sentences_per_batch=0"], ["trainer.sentences_per_batch=0: must be at least 1, or null"]),
        (["trainer.select=ter"], ["trainer.select=ter: must be bleu or perplexity"]),
        (["trainer.average=mean"], ["trainer.average=mean: must be none, ema or checkpoints"]),
        (["trainer.label_smoothing=1"], ["trainer.label_smoothing"]),
        (["trainer.ema_decay=1"], ["trainer.ema_decay=1: must be at least 0 and less than 1"]),
        (["trainer.workers=0"], ["trainer.workers=0: must be at least 1"]),
        (["trainer.max_source_length=1"], ["set is empty", "source too long", "trainer.max_source_length"]),
        (["device=cuda"], ["device=cuda was asked for", "no CUDA GPU", "device=cpu"]),
        (["device=gpu"], ["device=gpu is not known", "cuda:N"]),
        (["precision=half"], ["precision=half: must be auto, float32 or bf16"]),
        (["threads=0"], ["threads=0: must be at least 1, or null"]),
        (["threads=two"], ["threads=two", "a whole number, at least 1, or null"]),
        (["model.dropout=2"], ["model.dropout=2: must be at least 0 and less than 1"]),
        (["encoder.layers=0"], ["encoder.layers=0: must be at least 1"]),
        (["encoder.size=-4"], ["encoder.size=-4: must be at least 1"]),
        (["encoder.cell=rnn"], ["encoder.cell=rnn: must be gru or lstm"]),
        (["attention.heads=5"], ["attention.size=16: must be a multiple of attention.heads=5", "attention.size=15"]),
        (["decoder.first_state=first"], ["decoder.first_state=first: must be auto, backward, last, mean or zero"]),
        (["tokenizer.joint=false"], ["model.tie_embeddings=all needs one vocabulary", "tokenizer.joint=true"]),
        (["model.tie_embeddings=some"], ["model.tie_embeddings=some: must be none, target or all"]),
        (["decoder.readout.size=7"], ["decoder.readout.size=32"]),
        (["optimizer.lr=-1"], ["The optimizer refuses its settings"]),
        (["schedule.warmup_steps=-1"], ["schedule.warmup_steps=-1: must be at least 0"]),
        (["search.nbest=9"], ["search.nbest=9: must be at most beam_size=5", "Give search.beam_size=9"]),
        (["tokenizer.model=nowhere.model"], ["nowhere.model"]),
        (["tokenizer=char", "tokenizer.sampling=0.3"], ["tokenizer.sampling=0.3 is not available"]),
        (["name=a/b"], ["name=a/b is no name for a folder", "checkpoints="]),
        (["name="], ["is no name for a folder"]),
        (["resume=true", "name=null"], ["resume=true needs the run's name"]),
        (["name=numbers"], ["numbers exists already", "resume=true", "another name="]),
        (["name=other"], ["other exists and is no run, or an incomplete one", "another name="]),
        (["name=other", "resume=true"], ["other exists and is no run, or an incomplete one"]),
        (["checkpoints=in.txt"], ["in.txt", "checkpoints="]),
    ],
    ids=lambda value: " ".join(value) if "=" in value[0] else "",
)
def test_a_training_that_cannot_be(
    more: list[str], parts: list[str], here: Path, text: Path, trained: Path, capfd: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    copied(trained, here)
    write_lines(here / "in.txt", ["eins"])
    write_lines(here / "other" / "notes.txt", ["mine"])
    line = ["trainer.steps=2"] + ["encoder.size=10"] * (more == ["attention/score=dot"])
    line += ["name=a"] * (not any(word.startswith("name=") for word in more))
    message = refusal(capfd, here, "train", *words(text, here, *line, *more))
    for part in parts:
        assert part in message


def spoil(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda folder: (folder / "train.en").unlink(), ["There is no train.en", "train.de"]),
        (spoil("train.en", b"one\ntwo\n"), ["train.de has 300 lines", "train.en has 2"]),
        (
            spoil("train.de", b"eins\n" * 41 + b"f\xfcnf\n" + b"x\n" * 258),
            ["train.de, line 42: not valid UTF-8", "iconv"],
        ),
        (spoil("valid.en", b"\xff\xfeo\x00"), ["valid.en is UTF-16"]),
        (lambda folder: [spoil(f"train.{side}", b"")(folder) for side in ("de", "en")], ["empty"]),
        (lambda folder: [spoil(f"valid.{side}", b"\n \n")(folder) for side in ("de", "en")], ["valid", "empty"]),
        (lambda folder: (folder / "train.de").rename(folder / "train.de.gz"), []),
        (spoil("train.de", b"\x1f\x8b\x08\x00broken"), ["train.de is a broken gzip file"]),
    ],
    ids=range(8),
)
def test_a_text_that_cannot_be(change: Callable[[Path], object], parts: list[str], here: Path, capfd: Capture) -> None:
    folder = write_text(here / "text")
    change(folder)
    line = words(folder, here / "runs", "name=a", "trainer.steps=1", f"cache={here / 'cache'}")
    if not parts:  # gzip is known by its first bytes, not by its name
        assert call("train", *line) == 0
        return
    message = refusal(capfd, here, "train", *line)
    for part in parts:
        assert part in message
    assert not (here / "runs").exists()


def test_a_loss_that_is_no_number_is_said(
    here: Path, text: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nmt.training import learner, loss

    def broken(*arguments: object, **settings: object) -> loss.Loss:
        found = loss.batch_loss(*arguments, **settings)  # type: ignore[arg-type]
        return found._replace(total=found.total * float("nan"))

    monkeypatch.setattr(learner, "batch_loss", broken)
    assert call("train", *words(text, here, "name=a", "trainer.steps=2")) == 1
    err = capfd.readouterr().err
    assert "nmt.train: The loss became nan at step 0." in err
    assert "optimizer.lr" in err


# Translating and evaluating


TRANSLATE = ["run={run}", "input={here}/in.txt", "output={here}/out.txt"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["input={here}/in.txt"], ["run= must be given", "run=checkpoints/NAME"]),
        (["run=[]", "input={here}/in.txt"], ["run=[] names no run"]),
        (["run={here}/nubmers", *TRANSLATE[1:]], ["There is no run", "'numbers'"]),
        (["run={here}/other", *TRANSLATE[1:]], ["is no run, or an incomplete one"]),
        (["run={here}/in.txt", *TRANSLATE[1:]], ["in.txt is a file"]),
        (["run={run}", "input={here}/ni.txt", TRANSLATE[2]], ["There is no file", "ni.txt", "'in.txt'"]),
        (["run={run}", "input={here}/other", TRANSLATE[2]], ["other is a folder"]),
        (["run={run}", "input={here}/latin.txt", TRANSLATE[2]], ["latin.txt, line 3: not valid UTF-8"]),
        ([*TRANSLATE[:2], "output={here}/other"], ["output=", "other is a folder"]),
        ([*TRANSLATE[:2], "output={here}/no/out.txt"], ["there is no folder", "no"]),
        ([*TRANSLATE[:2], "output={here}/in.txt"], ["is the input. Write somewhere else"]),
        ([*TRANSLATE[:2], "output={here}/./other/../in.txt"], ["is the input"]),
        ([*TRANSLATE[:2], "output={here}/hard.txt"], ["is the input"]),
        ([*TRANSLATE, "alignments={here}/in.txt"], ["is the input"]),
        ([*TRANSLATE, "alignments={here}/out.txt"], ["both name", "out.txt"]),
        ([*TRANSLATE, "heatmaps={here}/in.txt"], ["in.txt"]),
        ([*TRANSLATE, "heatmaps={here}/latin.txt"], ["latin.txt is a file. Name a folder"]),
        ([*TRANSLATE, "heatmaps=/proc/x"], ["heatmaps=/proc/x: nothing can be written into /proc"]),
        ([*TRANSLATE, "search.nbest=9"], ["search.beam_size=9"]),
        ([*TRANSLATE, "search.beam_size=0"], ["search.beam_size=0: must be at least 1"]),
        ([*TRANSLATE, "search=astar"], ["There is no search=astar", "beam, greedy, sampling"]),
        ([*TRANSLATE, "search.temperature=2"], ["a setting of search=sampling"]),
        ([*TRANSLATE, "head=1"], ["head=1 is not there. Give head=mean or head=0"]),
        ([*TRANSLATE, "head=best"], ["head=best is not there"]),
        ([*TRANSLATE, "shift=2"], ["shift=2: must be 0 or 1"]),
        ([*TRANSLATE, "checkpoint=first"], ["checkpoint=first: must be best or last"]),
        ([*TRANSLATE, "long_lines=drop"], ["long_lines=drop: must be split or truncate"]),
        ([*TRANSLATE, "batch_sentences=0"], ["batch_sentences=0: must be at least 1"]),
        ([*TRANSLATE, "max_source_length=0"], ["max_source_length=0: must be at least 1"]),
        ([*TRANSLATE, "length_ratio=long"], ["length_ratio=long: must be a number, at least 0, or null"]),
        ([*TRANSLATE, "length_ratio=-1"], ["length_ratio=-1: must be at least 0, or null"]),
        ([*TRANSLATE, "extra_length=0"], ["extra_length=0: must be at least 1"]),
        ([*TRANSLATE, "encoder=lstm"], ["no choice 'encoder'", "fixed by the run"]),
        ([*TRANSLATE, "ouput=x"], ["'ouput'", "'output'"]),
        (["run={none}", *TRANSLATE[1:], "alignments={here}/links"], ["decoder=none has none", "with attention"]),
        (["run={none}", *TRANSLATE[1:], "heatmaps={here}/pictures"], ["decoder=none has none"]),
        (["run=[{run},{none}]", *TRANSLATE[1:], "alignments={here}/links"], ["decoder=none has none"]),
    ],
    ids=lambda value: value[-1] if "=" in value[-1] else "",
)
def test_a_translation_that_cannot_be(
    line: list[str], parts: list[str], here: Path, trained: Path, unattentive: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    write_lines(here / "in.txt", ["eins", "zwei"])
    write_lines(here / "other" / "notes.txt", ["mine"])
    write_lines(here / "out.txt", ["as it was"])
    os.link(here / "in.txt", here / "hard.txt")
    (here / "latin.txt").write_bytes(b"eins\n\nf\xfcnf\nsechs\n")
    filled = [word.format(run=run, here=here, none=unattentive) for word in line]
    message = refusal(capfd, here, "translate", *filled)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["run={run}", "split=tset"], ["has no split 'tset'", "test", "'test'"]),
        (["run={run}", "source={here}/a"], ["source= needs reference= beside it"]),
        (["run={run}", "reference={here}/a"], ["reference= needs source= beside it"]),
        (["run={run}", "source={here}/a", "reference={here}/b"], ["a has 2 lines", "b has 3"]),
        (["run={run}", "source={here}/a", "reference={here}/c"], ["There is no file", "c"]),
        (["run={run}", "source={here}/e", "reference={here}/e"], ["e is empty"]),
        (["run={run}", "source={here}/a", "reference={here}/a", "split=test"], ["split= and source="]),
        (["run={run}", "lines=[21]"], ["lines=21: test has the lines 1 to 20"]),
        (["run={run}", "lines=[0]"], ["lines=0"]),
        (["run={run}", "lines=[one]"], ["lines=one: give line numbers"]),
        (["run={run}", "lines=3"], ["lines=3: must be a list, written [a,b]"]),
        (["run={run}", "output={here}/a"], ["a is a file. Name a folder"]),
        (["run={run}", "head=3"], ["head=3 is not there"]),
        (["run={none}", "lines=[2]"], ["decoder=none has no weights to draw"]),
        (["run={here}/nowhere"], ["There is no run"]),
    ],
    ids=lambda value: value[-1] if "=" in value[-1] else "",
)
def test_an_evaluation_that_cannot_be(
    line: list[str], parts: list[str], here: Path, trained: Path, unattentive: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    for name, lines in (("a", ["eins", "zwei"]), ("b", ["one", "two", "three"]), ("e", [])):
        write_lines(here / name, lines)
    filled = [word.format(run=run, here=here, none=unattentive) for word in line]
    message = refusal(capfd, here, "evaluate", *filled)
    for part in parts:
        assert part in message


def test_the_text_of_a_run_that_has_moved_is_missed(here: Path, trained: Path, capfd: Capture) -> None:
    run = Run(copied(trained, here))
    config = run.config()
    config.data.test = str(here / "gone" / "test")
    run.write_config(config)
    assert "There is no folder" in refusal(capfd, here, "evaluate", f"run={run.folder}")


# Damaged runs


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rewritten(**nodes: object) -> Callable[[Path], None]:
    """Sets keys of config.yaml (a double underscore is a dot)."""

    def change(path: Path) -> None:
        config = OmegaConf.load(path)
        for key, value in nodes.items():
            OmegaConf.update(config, key.replace("__", "."), value, force_add=True)
        path.write_text(OmegaConf.to_yaml(config), encoding="utf-8")

    return change


def of_old_version(path: Path, encoder: str) -> None:
    """Makes config.yaml what version 0.1 wrote, with classes in place of choices, and this one for the encoder."""
    config: Any = OmegaConf.load(path)
    for place, classes in CLASSES.items():
        OmegaConf.update(config, f"{place}._target_", next(iter(classes)), force_add=True)
    OmegaConf.update(config, "encoder._target_", encoder)
    config.pop("choices")
    path.write_text(OmegaConf.to_yaml(config), encoding="utf-8")


def fact(**changed: object) -> Callable[[Path], None]:
    """Sets facts of run.json."""

    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changed}), encoding="utf-8")

    return change


def without(key: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        config = OmegaConf.load(path)
        assert isinstance(config, DictConfig)
        parent, _, last = key.rpartition(".")
        del (config[parent] if parent else config)[last]
        path.write_text(OmegaConf.to_yaml(config), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("name", "damage", "parts"),
    [
        ("best.safetensors", halve, ["best.safetensors is damaged"]),
        ("best.safetensors", Path.unlink, ["best.safetensors is missing", "checkpoint=last"]),
        ("best.safetensors", lambda path: path.write_bytes(b""), ["best.safetensors is damaged"]),
        ("tokenizer/tokenizer.model", Path.unlink, ["model is missing: the run is incomplete", "train again"]),
        ("tokenizer/tokenizer.model", halve, ["tokenizer.model is not a SentencePiece model, or is damaged"]),
        ("config.yaml", Path.unlink, ["is no run, or an incomplete one: it has no config.yaml"]),
        ("config.yaml", halve, ["config.yaml is damaged"]),
        ("config.yaml", lambda path: path.write_bytes(b"\xff\x00: ["), ["config.yaml is damaged"]),
        ("config.yaml", lambda path: path.write_text("- a list\n"), ["config.yaml is damaged: it holds no settings"]),
        ("config.yaml", lambda path: path.write_text(""), ["config.yaml is damaged"]),
        ("config.yaml", without("decoder"), ["config.yaml is damaged: decoder missing"]),
        (
            "config.yaml",
            rewritten(decoder=3),
            ["config.yaml is damaged", "but decoder is missing"],
        ),
        ("config.yaml", rewritten(model="x"), ["config.yaml is damaged: it does not describe a model"]),
        ("config.yaml", rewritten(search__beam_size="abc"), ["config.yaml is damaged: it does not describe a search"]),
        ("config.yaml", rewritten(search=3), ["search=beam is chosen, but search is missing"]),
        ("config.yaml", rewritten(encoder__size=17), ["best.safetensors does not belong to this run's configuration"]),
        ("config.yaml", rewritten(encoder__szie=17), ["encoder.szie is not a setting", "'size'"]),
        ("config.yaml", rewritten(encoder__size=-3), ["config.yaml is damaged: it does not describe a model"]),
        ("config.yaml", rewritten(encoder__size="${nothing}"), ["holds an interpolation"]),
        # A stranger's run is data, not code: it names choices that are installed, and no class.
        ("config.yaml", rewritten(encoder___target_="os.system"), ["names a class (_target_)", "Do not use this run"]),
        ("config.yaml", rewritten(decoder__readout___target_="builtins.exec"), ["names a class (_target_)"]),
        ("config.yaml", rewritten(choices__encoder="os.system"), ["there is no encoder=os.system", "gru, lstm"]),
        ("config.yaml", rewritten(choices__search="../encoder/gru"), ["there is no search=../encoder/gru"]),
        ("config.yaml", rewritten(choices__os="system"), ["os=system is chosen, but os is missing"]),
        ("config.yaml", rewritten(choices=3), ["it has no choices"]),
        ("config.yaml", rewritten(choices={"decoder": "luong"}), ["decoder.previous_state is not a setting of Luong"]),
        ("config.yaml", lambda path: of_old_version(path, "os.system"), ["encoder._target_=os.system stands for none"]),
        (
            "config.yaml",
            lambda path: of_old_version(path, "nmt.runs.Run"),
            ["encoder._target_=nmt.runs.Run stands for"],
        ),
    ],
    ids=range(28),
)
def test_a_damaged_run_is_named(
    name: str, damage: Callable[[Path], object], parts: list[str], here: Path, trained: Path, capfd: Capture
) -> None:
    run = copied(trained, here)
    damage(run / name)
    write_lines(here / "in.txt", ["eins"])
    write_lines(here / "out.txt", ["as it was"])
    line = [f"run={run}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}"]
    message = refusal(capfd, here, "translate", *line)
    for part in parts:
        assert part in message


def test_a_run_without_its_facts_is_incomplete(here: Path, trained: Path, capfd: Capture) -> None:
    run = copied(trained, here)
    (run / "run.json").unlink()
    assert "run.json is missing: the run is incomplete" in refusal(capfd, here, "evaluate", f"run={run}")


@pytest.mark.parametrize(
    ("verb", "name", "damage", "parts"),
    [
        ("evaluate", "config.yaml", without("data.train"), ["config.yaml is damaged: it does not describe a data set"]),
        ("evaluate", "config.yaml", rewritten(data__test=3), ["config.yaml is damaged"]),
        ("evaluate", "run.json", fact(text=[]), ["run.json is damaged"]),
        ("train", "config.yaml", without("trainer"), ["config.yaml is damaged"]),
        ("train", "run.json", fact(step=None), ["run.json is damaged"]),
        ("train", "overrides.json", lambda path: path.write_text('["foo", 3]'), ["overrides.json is damaged"]),
        ("train", "trainer.pt", lambda path: torch.save({"a": 1}, path), ["trainer.pt does not fit this run: model"]),
    ],
    ids=range(7),
)
def test_other_damage_is_named_and_changes_nothing(
    verb: str,
    name: str,
    damage: Callable[[Path], object],
    parts: list[str],
    here: Path,
    trained: Path,
    capfd: Capture,
) -> None:
    run = copied(trained, here)
    damage(run / name)
    line = [f"run={run}"]
    if verb == "train":
        line = [f"name={run.name}", f"checkpoints={here}", "resume=true", "trainer.steps=100000"]
    message = refusal(capfd, here, verb, *line)
    for part in parts:
        assert part in message


def test_the_name_of_a_split_is_not_explained_by_folders(here: Path, trained: Path, capfd: Capture) -> None:
    message = refusal(capfd, here, "evaluate", f"run={trained}", "split=tset")
    assert "'test'" in message
    assert "Relative paths" not in message


@pytest.mark.skipif(os.geteuid() == 0, reason="whoever may do everything may write everywhere")
def test_a_protected_file_is_not_replaced(here: Path) -> None:
    path = write_lines(here / "mine", ["as it was"])
    path.chmod(0o400)
    with pytest.raises(UserError, match="write-protected"):
        files.write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "as it was\n"


def test_a_private_file_stays_private(here: Path) -> None:
    path = write_lines(here / "mine", ["as it was"])
    path.chmod(0o600)
    files.write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_empty_path_is_no_path(here: Path, trained: Path, capfd: Capture) -> None:
    message = refusal(capfd, here, "translate", f"run={trained}", "input=", f"output={here / 'out'}")
    assert "input= is empty" in message


@pytest.mark.parametrize(("stream", "words"), [(1, ["--version"]), (2, ["run={run}", "max_source_length=2"])])
def test_a_closed_stream_is_like_nobody_listening(stream: int, words: list[str], here: Path, trained: Path) -> None:
    line = [sys.executable, "-m", "nmt.translate", *(word.format(run=trained) for word in words)]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {stream}>&-', "sh", *line],
        cwd=here,
        env=environment(),
        input=b"eins zwei\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == (0 if stream == 1 else 1), "nothing but the translation"
    assert done.stderr == b""


# Full disks


@pytest.fixture
def tiny(here: Path) -> Iterator[Path]:
    """A file system of 600 kilobytes."""
    folder = here / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leaves no room in a small file system."""
    with contextlib.suppress(OSError), (folder / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


def test_a_full_disk_stops_training_and_leaves_what_was_there_whole(
    tiny: Path, here: Path, text: Path, capfd: Capture
) -> None:
    settings = ["trainer.steps=4", "trainer.validate_every=2"]
    assert call("train", *words(text, tiny, "name=a", *settings)) == 1  # too little room for what resuming takes
    err = capfd.readouterr().err
    assert f"nmt.train: Cannot write {tiny / 'a' / 'trainer.pt'}: No space left on device. Free some space" in err
    assert "Traceback" not in err
    assert [path.name for path in (tiny / "a").iterdir() if path.name.startswith(".")] == []
    subprocess.run(["mount", "-o", "remount,size=5m", str(tiny)], check=True)
    assert call("train", "name=a", f"checkpoints={tiny}", "resume=true") == 0
    assert call("train", *words(text, here, "name=whole", *settings)) == 0
    assert same(tiny / "a" / "last.safetensors", here / "whole" / "last.safetensors")


def test_a_full_disk_leaves_the_old_translation(tiny: Path, here: Path, trained: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"] * 3000)
    write_lines(tiny / "out.txt", ["as it was"])
    fill(tiny)
    line = [f"run={trained}", f"input={here / 'in.txt'}", "search=greedy", f"output={tiny / 'out.txt'}"]
    assert "No space left on device. Free some space" in refusal(capfd, tiny, "translate", *line)
    assert call("evaluate", f"run={trained}", f"output={tiny / 'scores'}") == 1
    err = capfd.readouterr().err
    assert "hypotheses.txt: No space left on device. Free some space" in err
    assert "Traceback" not in err
    assert not any(path.is_file() for path in (tiny / "scores").rglob("*"))


def test_a_full_disk_makes_no_run(tiny: Path, here: Path, text: Path, capfd: Capture) -> None:
    fill(tiny)
    line = words(text, tiny, "name=a", "trainer.steps=4", f"cache={here / 'cache'}")
    assert "No space left on device" in refusal(capfd, tiny, "train", *line)
    line = words(text, here, "name=a", "trainer.steps=4")
    line = [word for word in line if not word.startswith("cache=")]
    assert "cache=FOLDER" in refusal(capfd, here, "train", *line, f"cache={tiny / 'cache'}")
    assert not (here / "a").exists()


def test_a_disk_that_fails_while_writing_leaves_the_old_files(
    here: Path, trained: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(trained, here)
    before = snapshot(run)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert call("train", "name=numbers", f"checkpoints={here}", "resume=true", "trainer.steps=201") == 1
    assert "No space left on device. Free some space" in capfd.readouterr().err
    after = snapshot(run)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in before)


def test_full_standard_output_is_said(here: Path, trained: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nmt.translate", f"run={trained}"],
            cwd=here,
            env=environment(),
            input=b"eins\n",
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"nmt.translate: Cannot write standard output: No space left on device")
    assert done.stderr.count(b"\n") == 1
