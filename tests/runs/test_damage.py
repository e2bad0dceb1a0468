"""Damaged runs, data that have moved, and what is said of them."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from nmt.runs import run as runs
from nmt.runs.trust import trust
from tests.small import Capture, refusal, write_lines

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
        ("config.yaml", Path.unlink, ["is not a run: config.yaml is missing"]),
        ("config.yaml", halve, ["config.yaml is damaged"]),
        ("config.yaml", lambda path: path.write_bytes(b"\xff\x00: ["), ["config.yaml is damaged"]),
        ("config.yaml", lambda path: path.write_text("- a list\n"), ["config.yaml is damaged: it has no settings"]),
        ("config.yaml", without("decoder"), ["config.yaml is damaged: decoder missing"]),
        ("config.yaml", rewritten(decoder=3), ["config.yaml is damaged", "but decoder is missing"]),
        ("config.yaml", rewritten(model="x"), ["config.yaml is damaged: it does not describe a model"]),
        ("config.yaml", rewritten(search__beam_size="abc"), ["config.yaml is damaged: it does not describe a search"]),
        ("config.yaml", rewritten(search=3), ["it has search=beam, but search is missing"]),
        ("config.yaml", rewritten(encoder__size=17), ["best.safetensors does not belong to this run's configuration"]),
        ("config.yaml", rewritten(encoder__szie=17), ["encoder.szie is not a setting", "'size'"]),
        ("config.yaml", rewritten(encoder__size=-3), ["config.yaml is damaged: it does not describe a model"]),
        ("config.yaml", rewritten(encoder__size="${nothing}"), ["has an interpolation"]),
        # A stranger's run is data, not code: it names choices that are installed, and no class.
        ("config.yaml", rewritten(encoder___target_="os.system"), ["names a class (_target_)", "Do not use this run"]),
        ("config.yaml", rewritten(decoder__readout___target_="builtins.exec"), ["names a class (_target_)"]),
        ("config.yaml", rewritten(choices__encoder="os.system"), ["there is no encoder=os.system", "gru, lstm"]),
        ("config.yaml", rewritten(choices__search="../encoder/gru"), ["there is no search=../encoder/gru"]),
        ("config.yaml", rewritten(choices__os="system"), ["it has os=system, but os is missing"]),
        ("config.yaml", rewritten(choices=3), ["it has no choices"]),
        ("config.yaml", rewritten(choices={"decoder": "luong"}), ["decoder.previous_state is not a setting of Luong"]),
        ("run.json", fact(format=2), ["has format 2 in run.json, and this version of nmt reads format 1. Train"]),
        ("run.json", fact(format=None), ["run.json is damaged: format must be a whole number"]),
        ("run.json", lambda path: path.write_text("{}"), ["has no format number in run.json"]),
        ("run.json", Path.unlink, ["run.json is missing: the run is incomplete"]),
    ],
)
def test_a_damaged_run_is_named(
    name: str, damage: Callable[[Path], object], parts: list[str], here: Path, run: Path, capfd: Capture
) -> None:
    (run / "checksums.json").unlink()
    damage(run / name)
    write_lines(here / "in.txt", ["eins"])
    write_lines(here / "out.txt", ["as it was"])
    line = [f"run={run}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}"]
    message = refusal(capfd, here, "translate", *line)
    for part in parts:
        assert part in message


VERBS = {
    "translate": ["input={here}/in.txt"],
    "evaluate": ["data=run"],
    "align": ["source={here}/in.txt", "target={here}/in.txt"],
    "contrast": ["source={here}/in.txt", "reference={here}/in.txt", "contrasts={here}/contrasts.tsv"],
    "export": ["output={here}/exported", "format=onnx"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (rewritten(encoder__fast=True), "encoder.fast is not a setting of RecurrentEncoder"),
        (rewritten(encoder__dropout="much"), "encoder.dropout=much: must be "),
        (rewritten(choices__encoder="sru"), "there is no encoder=sru."),
        (without("search"), "search missing"),
    ],
    ids=["setting", "value", "choice", "part"],
)
def test_a_run_of_another_version_is_called_so(
    verb: str, change: Callable[[Path], None], reason: str, here: Path, run: Path, capfd: Capture
) -> None:
    (run / "checksums.json").unlink()
    fact(code=["0123456789ab"])(run / "run.json")
    change(run / "config.yaml")
    write_lines(here / "in.txt", ["eins"])
    write_lines(here / "contrasts.tsv", ["1\t0\tzwei"])
    message = refusal(capfd, here, verb, f"run={run}", *(word.format(here=here) for word in VERBS[verb]))
    assert f"{run} was made by another version (nmt 0.1.0, code 0123456789ab)" in message
    assert reason in message
    assert "damaged" not in message
    assert message.endswith("Train it again, or use that version.\n"), "somebody else's settings are in no command"


def test_a_resumed_run_of_another_version_is_called_so(here: Path, run: Path, capfd: Capture) -> None:
    (run / "checksums.json").unlink()
    fact(code=["0123456789ab"])(run / "run.json")
    without("trainer.simcut")(run / "config.yaml")
    trust([(run / name).read_bytes() for name in ("config.yaml", "overrides.json")])
    line = f"name={run.name}", f"checkpoints={run.parent}", "resume=true", "trainer.steps=100000"
    message = refusal(capfd, here, "train", *line)
    assert f"{run} was made by another version (nmt 0.1.0, code 0123456789ab)" in message
    assert "'simcut'" in message


def test_the_users_own_run_of_another_version_has_its_command(trained: Path) -> None:
    misfit = runs.Run(trained).misfit("x")
    assert misfit is None, "this version has made it"
    copy = fact(code=["0123456789ab"])
    before = (trained / "run.json").read_bytes()
    copy(trained / "run.json")
    said = str(runs.Run(trained).misfit("it has no heads."))
    (trained / "run.json").write_bytes(before)
    assert "cannot read it: it has no heads. Train it again (python -m nmt.train " in said
    assert said.endswith(" name=NAME), or use that version.")
    assert "trainer.steps=200" in said


def test_a_run_of_an_earlier_format_is_upgraded_step_by_step(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FORMAT", runs.FORMAT + 2)
    monkeypatch.setitem(runs.UPGRADES, runs.FORMAT - 2, lambda tree: {**tree, "seed": [tree["seed"]]})
    monkeypatch.setitem(runs.UPGRADES, runs.FORMAT - 1, lambda tree: {**tree, "seed": [*tree["seed"], 2]})
    before = trained.joinpath("config.yaml").read_text(encoding="utf-8")
    assert runs.Run(trained).tree()["seed"] == [1, 2]
    assert trained.joinpath("config.yaml").read_text(encoding="utf-8") == before


class Evil:
    """What a stranger might put into trainer.pt."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch broken-in",)


def saved(content: object) -> Callable[[Path], None]:
    return lambda path: torch.save(content, path)


def scrambled(path: Path) -> None:
    path.write_text("a: [1\nb: }", encoding="utf-8")


@pytest.mark.parametrize(
    ("verb", "name", "damage", "part"),
    [
        ("evaluate", "config.yaml", without("data.train"), "config.yaml is damaged: it does not describe a data set"),
        ("evaluate", "config.yaml", rewritten(data__test=3), "config.yaml is damaged"),
        ("evaluate", "run.json", fact(text=[]), "run.json is damaged"),
        ("train", "config.yaml", Path.unlink, "is not a run: config.yaml is missing"),
        ("train", "config.yaml", without("trainer"), "config.yaml is damaged"),
        ("train", "run.json", fact(step=None), "run.json is damaged"),
        ("train", "overrides.json", lambda path: path.write_text('["foo", 3]'), "overrides.json is damaged"),
        ("train", "overrides.json", scrambled, "overrides.json is damaged"),
        ("train", "overrides.json", Path.unlink, "overrides.json is missing"),
        ("train", "history.jsonl", scrambled, "history.jsonl is damaged"),
        ("train", "tokenizer/tokenizer.model", scrambled, "is not a SentencePiece model, or is damaged"),
        ("train", "trainer.pt", Path.unlink, "trainer.pt is missing"),
        ("train", "trainer.pt", halve, "trainer.pt is damaged"),
        ("train", "trainer.pt", saved([1, 2]), "trainer.pt is damaged"),
        ("train", "trainer.pt", saved({"a": 1}), "trainer.pt does not fit this run: model"),
        ("train", "trainer.pt", saved({"model": {}, "step": 3}), "trainer.pt does not fit this run"),
        ("train", "trainer.pt", saved({"model": Evil()}), "trainer.pt is damaged"),
        ("train", "trainer.pt", lambda path: path.write_bytes(pickle.dumps(Evil())), "trainer.pt is damaged"),
    ],
)
def test_other_damage_is_named_and_changes_nothing(
    verb: str, name: str, damage: Callable[[Path], object], part: str, here: Path, run: Path, capfd: Capture
) -> None:
    for other in ("checksums.json", "trainer-before.pt"):
        (run / other).unlink()
    damage(run / name)
    line = [f"run={run}", "data=run"]
    if verb == "train":
        line = [f"name={run.name}", f"checkpoints={here}", "resume=true", "trainer.steps=100000"]
    assert part in refusal(capfd, here, verb, *line)
    assert not (here / "broken-in").exists()
