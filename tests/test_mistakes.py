"""What a user's mistakes get: one message that names the thing and the cure, status 1, and nothing half-written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.runs.run import Run
from nmt.system.compute import choose_device
from nmt.system.errors import UserError
from tests.small import Capture, call, copied, refusal, words, write_lines, write_text

# Training


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (["data.train=nowhere/train"], ["no folder nowhere", "train.de"]),
        (["data.source=dee"], ["There is no train.dee and no train.dee.gz", "train.de"]),
        (["attention/score=dot"], ["decoder's state has 32", "encoder's 20", "decoder.size=20"]),
        (["attention/score=aditive"], ["There is no attention/score=aditive", "'additive'"]),
        (["trainer.steps=many"], ["trainer.steps=many", "a whole number, at least 1, or null"]),
        (["trainer.minutes=inf"], ["trainer.minutes=inf: must be a finite number"]),
        (["seed=-1"], ["seed=-1: must be from 0 to 4,294,967,295"]),
        (["seed=99999999999999999999"], ["seed=99999999999999999999: must be from 0"]),
        (["attention=dot"], ["dot is a choice of attention/score: write attention/score=dot"]),
        (["score=dot"], ["longer name: attention/score=dot"]),
        (["trainer.steps=null"], ["There is no budget", "trainer.steps, trainer.epochs or trainer.minutes"]),
        (["trainer.label_smoothing=1"], ["trainer.label_smoothing"]),
        (["trainer.r_drop=5", "trainer.simcut=3"], ["trainer.r_drop=5 and trainer.simcut=3", "Set one of them to 0"]),
        (["trainer.max_source_length=1"], ["set is empty", "source too long", "trainer.max_source_length"]),
        (["device=cuda"], ["device=cuda: torch finds", "no CUDA GPU", "device=cpu"]),
        (["device=gpu"], ["device=gpu: must be auto", "cuda:N"]),
        (["precision=half"], ["precision=half: must be auto, float32, bf16 or int8"]),
        (["model.dropout=2"], ["model.dropout=2: must be at least 0 and less than 1"]),
        (["encoder.layers=0"], ["encoder.layers=0: must be from 1 to 1,000"]),
        (["encoder.cell=rnn"], ["encoder.cell=rnn: must be gru or lstm"]),
        (["attention.heads=5"], ["attention.size=16: must be a multiple of attention.heads=5", "attention.size=15"]),
        (["tokenizer.joint=false"], ["model.tie_embeddings=all needs one vocabulary", "tokenizer.joint=true"]),
        (["model.tie_embeddings=some"], ["model.tie_embeddings=some: must be none, target or all"]),
        (["decoder.readout.size=7"], ["decoder.readout.size=32"]),
        (["optimizer.lr=-1"], ["optimizer.lr=-1: torch refuses it (Invalid learning rate"]),
        (["optimizer.betas=[0.9,2]"], ["optimizer.betas=[0.9, 2]: torch refuses it (Invalid beta parameter"]),
        (["search.nbest=9"], ["search.nbest=9: must be at most beam_size=5", "Give search.beam_size=9"]),
        (["tokenizer.model=nowhere.model"], ["nowhere.model"]),
        (["tokenizer=char", "tokenizer.sampling=0.3"], ["tokenizer.sampling=0.3 is not available"]),
        (["name=a/b"], ["name=a/b is not a valid folder name", "checkpoints="]),
        (["name="], ["is not a valid folder name"]),
        (["trainer.guided_alignment=1"], ["needs word links", "data.train_links=FILE", "text-de-en"]),
        (["data.train_links=in.txt"], ["in.txt has 1 line and the text has 300 lines"]),
        (["data.train_links=links", "trainer.guided_alignment=1"], ["links, sentence pair 300: the link 9-9"]),
        (["data.train_links=bad"], ["bad, line 7: '0:0' is not a word link"]),
        (["data.train_links=good", "trainer.guided_alignment=1", "decoder=none"], ["decoder=none has none"]),
        (["resume=true", "name=null"], ["resume=true needs the run's name"]),
        (["name=numbers"], ["numbers already exists", "resume=true", "another name="]),
        (["name=other"], ["other exists but is not a run", "another name="]),
        (["name=other", "resume=true"], ["other exists but is not a run"]),
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
    for name, links in (
        ("links", ["0-0"] * 299 + ["9-9"]),
        ("bad", ["0-0"] * 6 + ["0:0"] * 294),
        ("good", ["0-0"] * 300),
    ):
        write_lines(here / name, links)
    line = ["trainer.steps=2"] + ["encoder.size=10"] * (more == ["attention/score=dot"])
    line += ["name=a"] * (not any(word.startswith("name=") for word in more))
    message = refusal(capfd, here, "train", *words(text, here, *line, *more))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("count", "devices"), [(1, "device=cuda:0."), (3, "device=cuda:0 to cuda:2.")])
def test_a_gpu_that_is_not_there(count: int, devices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(UserError, match=rf"device=cuda:7 is not on this machine\. Give {devices}"):
        choose_device("cuda:7")


def spoil(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda folder: (folder / "train.en").unlink(), ["There is no train.en", "train.de"]),
        (spoil("train.en", b"one\ntwo\n"), ["train.de has 300 lines", "train.en has 2"]),
        (spoil("train.de", b"eins\n" * 41 + b"f\xfcnf\n" + b"x\n" * 258), ["train.de, line 42: not valid", "iconv"]),
        (spoil("valid.en", b"\xff\xfeo\x00\x00"), ["valid.en is broken UTF-16"]),
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


# Translating and evaluating


TRANSLATE = ["run={run}", "input={here}/in.txt", "output={here}/out.txt"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (["input={here}/in.txt"], ["run= must be given", "run=checkpoints/NAME"]),
        (["run=[]", "input={here}/in.txt"], ["run=[] is empty"]),
        (["run={here}/nubmers", *TRANSLATE[1:]], ["There is no run", "'numbers'"]),
        (["run={here}/other", *TRANSLATE[1:]], ["is not a run: config.yaml is missing"]),
        (["run={here}/in.txt", *TRANSLATE[1:]], ["in.txt is a file"]),
        (["run={run}", "input={here}/ni.txt", TRANSLATE[2]], ["There is no file", "ni.txt", "'in.txt'"]),
        (["run={run}", "input={here}/other", TRANSLATE[2]], ["other is a folder"]),
        (["run={run}", "input={here}/latin.txt", TRANSLATE[2]], ["latin.txt, line 3: not valid UTF-8"]),
        (["run={run}", "input=", TRANSLATE[2]], ["input= has no value"]),
        ([*TRANSLATE[:2], "output={here}/other"], ["output=", "other is a folder"]),
        ([*TRANSLATE[:2], "output={here}/no/out.txt"], ["does not exist. Create it: mkdir -p", "no"]),
        ([*TRANSLATE[:2], "output={here}/in.txt"], ["is the input. Write somewhere else"]),
        ([*TRANSLATE[:2], "output={here}/./other/../in.txt"], ["is the input"]),
        ([*TRANSLATE[:2], "output={here}/hard.txt"], ["is the input"]),
        ([*TRANSLATE, "alignments={here}/in.txt"], ["is the input"]),
        ([*TRANSLATE, "alignments={here}/out.txt"], ["are both", "out.txt"]),
        ([*TRANSLATE, "heatmaps={here}/in.txt"], ["in.txt"]),
        ([*TRANSLATE, "heatmaps={here}/latin.txt"], ["latin.txt is a file. Name a folder"]),
        ([*TRANSLATE, "heatmaps=/proc/x"], ["heatmaps=/proc/x: the folder /proc is not writable"]),
        ([*TRANSLATE, "search.nbest=9"], ["search.beam_size=9"]),
        ([*TRANSLATE, "search.temperature=2"], ["belongs to search=sampling"]),
        ([*TRANSLATE, "head=1"], ["head=1 does not exist. Give head=auto, mean or 0"]),
        ([*TRANSLATE, "head=best"], ["head=best does not exist"]),
        ([*TRANSLATE, "shift=2"], ["shift=2: must be 0 or 1"]),
        ([*TRANSLATE, "long_lines=drop"], ["long_lines=drop: must be split or truncate"]),
        ([*TRANSLATE, "length_ratio=long"], ["length_ratio=long: must be a number, at least 0, or null"]),
        ([*TRANSLATE, "encoder=lstm"], ["no choice 'encoder'", "fixed by the run"]),
        ([*TRANSLATE, "encoder.size=32"], ["no setting 'encoder.size': the run fixes its encoder."]),
        (["run={none}", *TRANSLATE[1:], "alignments={here}/links"], ["decoder=none", "with attention"]),
        (["run={none}", *TRANSLATE[1:], "heatmaps={here}/pictures"], ["decoder=none"]),
        (["run=[{run},{none}]", *TRANSLATE[1:], "alignments={here}/links"], ["decoder=none"]),
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
        (["run={run}", "source={here}/a"], ["source= needs reference= as well"]),
        (["run={run}", "reference={here}/a"], ["reference= needs source= as well"]),
        (["run={run}", "source={here}/a", "reference={here}/b"], ["a has 2 lines", "b has 3"]),
        (["run={run}", "source={here}/a", "reference={here}/c"], ["There is no file", "c"]),
        (["run={run}", "source={here}/e", "reference={here}/e"], ["e is empty"]),
        (["run={run}", "source={here}/a", "reference={here}/a", "split=test"], ["split= and source="]),
        (["run={run}", "lines=[21]"], ["lines=21: test has lines 1 to 20"]),
        (["run={run}", "lines=[one]"], ["lines=one: lines are numbered"]),
        (["run={run}", "lines=3"], ["lines=3: must be a list, written [a,b]"]),
        (["run={run}", "output={here}/a"], ["a is a file. Name a folder"]),
        (["run={run}", "head=3"], ["head=3 does not exist"]),
        (["run={none}", "lines=[2]"], ["lines= needs attention"]),
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


@pytest.mark.parametrize(
    ("verb", "word", "near"),
    [
        ("translate", "run=checkpoint/none", " Did you mean 'checkpoints/none'?"),
        ("evaluate", "run=none", " Did you mean 'checkpoints/none'?"),
        ("compare", "runs=nodir", ""),
    ],
)
def test_a_run_in_another_folder_is_found(
    verb: str, word: str, near: str, here: Path, unattentive: Path, capfd: Capture
) -> None:
    copied(unattentive, here / "checkpoints")
    name = word.partition("=")[2]
    message = refusal(capfd, here, verb, word)
    assert message == f"nmt.{verb}: There is no run {name}.{near} There are runs in checkpoints.\n"


def test_the_text_of_a_run_that_has_moved_is_missed(here: Path, trained: Path, capfd: Capture) -> None:
    run = Run(copied(trained, here))
    config = run.config()
    config.data.test = str(here / "gone" / "test")
    run.write_config(config)
    assert "There is no folder" in refusal(capfd, here, "evaluate", f"run={run.folder}")
