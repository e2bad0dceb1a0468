"""Flipped bits, lost weights and killed saves: noticed when a file is read, and by a resumed training."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors
import torch

from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.integrity import add, checksum, damage, keep, known, replacing
from tests.small import Capture, call, copied, refusal, start, words, write_lines
from tests.train.test_resume import interrupt_at

pytestmark = pytest.mark.long


def flipped(path: Path, bit: int) -> None:
    """Flips one bit of a file."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def resumed(run: Path, steps: int) -> list[str]:
    return [f"name={run.name}", f"checkpoints={run.parent}", "resume=true", f"trainer.steps={steps}"]


def test_every_bit_counts(tmp_path: Path) -> None:
    path = tmp_path / "file"
    generator = random.Random(7)
    path.write_bytes(generator.randbytes(37))
    add(tmp_path, ["file"])
    for bit in range(8 * 37):
        flipped(path, bit)
        assert damage(path)
        flipped(path, bit)
    assert damage(path) == ""
    path.write_bytes(path.read_bytes() + b"x")
    assert damage(path)


def test_a_file_is_whole_before_and_after_it_is_replaced(tmp_path: Path) -> None:
    """Whoever is killed in between leaves either."""
    path = tmp_path / "file"
    for content in (b"first", b"second", b"third"):
        with replacing(tmp_path, "file") as temporary:
            temporary.write_bytes(content)
        assert damage(path) == ""
    assert len(known(tmp_path)["file"]) == 2
    path.write_bytes(b"second")
    assert damage(path) == ""
    path.write_bytes(b"first")
    assert damage(path)
    path.write_bytes(b"third")
    keep(tmp_path, "file", "copy")
    with replacing(tmp_path, "file") as temporary:
        temporary.write_bytes(b"fourth")
    assert (tmp_path / "copy").read_bytes() == b"third"
    assert damage(tmp_path / "copy") == ""
    flipped(tmp_path / "copy", 3)
    assert damage(tmp_path / "copy")


@pytest.mark.parametrize("name", ["config.yaml", "overrides.json", "run.json", "history.jsonl"])
def test_what_people_edit_is_said_to_have_changed(name: str, here: Path, run: Path, capfd: Capture) -> None:
    """Nothing refuses it."""
    assert damage(run / name) == ""
    text = (run / name).read_text(encoding="utf-8")
    (run / name).write_text(text.replace(": ", ":  ", 1).replace(",", " ,", 1), encoding="utf-8")
    capfd.readouterr()
    assert call("check", f"run={run}") == 0
    out = capfd.readouterr().out
    assert f"If you have not edited {name}, restore the run from an intact copy." in out
    assert f"{run} is intact." in out
    write_lines(here / "in.txt", ["eins"])
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}") == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"file": 1}', '{"file": [1]}', '{"file": [["x"]]}', "\xff", "[" * 9999])
def test_checksums_can_be_damaged_too(text: str, tmp_path: Path) -> None:
    (tmp_path / "checksums.json").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"checksums\.json is damaged"):
        damage(tmp_path / "file")


def test_a_name_in_the_checksums_that_is_no_file_is_told(run: Path, capfd: Capture) -> None:
    """As after a flipped bit in it, which leaves the file itself without a checksum."""
    text = (run / "checksums.json").read_text()
    (run / "checksums.json").write_text(text.replace('"best.', '"bext.'))
    capfd.readouterr()
    assert call("check", f"run={run}") == 1
    assert "is not intact: best.safetensors, bext.safetensors" in capfd.readouterr().out


@pytest.mark.parametrize(
    "name", ["best.safetensors", "tokenizer/tokenizer.model", "lexicon.safetensors", "words.safetensors"]
)
def test_a_flipped_bit_is_noticed_before_anything_is_translated(
    name: str, here: Path, run: Path, capfd: Capture
) -> None:
    write_lines(here / "in.txt", ["eins"])
    size = (run / name).stat().st_size
    generator = random.Random(name)
    for bit in (generator.randrange(8 * size) for _ in range(4)):
        flipped(run / name, bit)
        message = refusal(capfd, here, "translate", f"run={run}", f"input={here / 'in.txt'}", "shortlist=5")
        assert f"{run / name} is damaged: its checksum is not the one that it was written with" in message
        flipped(run / name, bit)
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}", "shortlist=5") == 0


def test_check_says_what_is_whole(run: Path, capfd: Capture) -> None:
    capfd.readouterr()
    assert call("check", f"run={run}") == 0
    assert f"{run} is intact." in capfd.readouterr().out
    for name in ("trainer.pt", "trainer-before.pt"):  # as a finished training says that one can
        (run / name).unlink()
    assert call("check", f"run={run}") == 0
    assert "not there; not needed for translating" in capfd.readouterr().out
    flipped(run / "last.safetensors", 8 * (run / "last.safetensors").stat().st_size - 30)
    (run / "words.safetensors").unlink()
    assert call("check", f"run={run}") == 1
    assert "is not intact: last.safetensors, words.safetensors. Restore" in capfd.readouterr().out
    (run / "checksums.json").unlink()
    assert call("check", f"run={run}") == 1
    assert "is not intact: best.safetensors, last.safetensors. Restore" in capfd.readouterr().out


def test_a_run_without_its_checksums_says_so_and_works(here: Path, run: Path, capfd: Capture) -> None:
    (run / "checksums.json").unlink()
    write_lines(here / "in.txt", ["eins"])
    assert call("translate", f"run={run}", f"input={here / 'in.txt'}") == 0
    warning = f"{run / 'checksums.json'} has no checksum of the weights, so damage cannot be noticed."
    assert warning in capfd.readouterr().err
    assert call("train", *resumed(run, 201)) == 0
    assert warning in capfd.readouterr().err


LOSSES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "shortened": lambda path: path.write_bytes(path.read_bytes().splitlines(keepends=True)[0]),
    "without its first": lambda path: path.write_bytes(path.read_bytes().splitlines(keepends=True)[1]),
    "missing": Path.unlink,
}


@pytest.mark.parametrize(
    ("loss", "with_checksums"),
    [("emptied", False), ("shortened", True), ("without its first", False), ("missing", True)],
)
def test_a_history_that_lost_validations_is_named_and_restored(
    loss: str, with_checksums: bool, run: Path, capfd: Capture
) -> None:
    before = Run(run).history()
    if not with_checksums:
        (run / "checksums.json").unlink()
    LOSSES[loss](run / "history.jsonl")
    capfd.readouterr()
    assert call("check", f"run={run}") == 1
    assert "is not intact: " in (out := capfd.readouterr().out)
    assert "history.jsonl" in out.rpartition("is not intact: ")[2]
    assert call("train", *resumed(run, 203)) == 0
    assert "history.jsonl has lost validations: they are restored from the saved state." in capfd.readouterr().err
    assert Run(run).history()[:-1] == before
    assert not with_checksums or call("check", f"run={run}") == 0


def test_weights_of_another_run_are_refused(here: Path, text: Path, capfd: Capture) -> None:
    """Whole, with their checksums: of another seed, and of another mechanism of the same sizes."""
    line = words(text, here, "trainer.steps=2")
    for name, more in (("a", []), ("b", ["seed=2"]), ("c", ["attention/window=local_m", "trainer.save_minutes=0"])):
        assert call("train", *line, *more, f"name={name}") == 0
    write_lines(here / "in.txt", ["eins"])
    for other, key in (("b", "seed"), ("c", "attention.window.radius, attention/window")):
        run = copied(here / "a", here / other)
        for name in ("best.safetensors", "last.safetensors", "trainer.pt", "checksums.json"):
            shutil.copyfile(here / other / name, run / name)
        message = refusal(capfd, here, "translate", f"run={run}", f"input={here / 'in.txt'}")
        assert f"{run / 'best.safetensors'} does not belong to this run's configuration: {key}" in message
        assert f"{run / 'trainer.pt'} does not fit this run: {key}" in refusal(capfd, here, "train", *resumed(run, 3))
    tree = (here / "a" / "config.yaml").read_text(encoding="utf-8")
    (here / "a" / "config.yaml").write_text(tree.replace("beam_size: 5", "beam_size: 2"), encoding="utf-8")
    assert call("translate", f"run={here / 'a'}", f"input={here / 'in.txt'}") == 0


@pytest.mark.parametrize("with_checksums", [True, False])
def test_a_damaged_state_falls_back_to_the_one_before(with_checksums: bool, run: Path, capfd: Capture) -> None:
    """Without checksums, those of the archive show most bits."""
    if not with_checksums:
        (run / "checksums.json").unlink()
    flipped(run / "trainer.pt", 8 * ((run / "trainer.pt").stat().st_size // 2))
    capfd.readouterr()
    assert call("train", *resumed(run, 203)) == 0
    err = capfd.readouterr().err
    assert f"{run / 'trainer.pt'} is damaged: training continues from trainer-before.pt, the state of step " in err
    assert Run(run).facts()["step"] == 203
    assert [entry["step"] for entry in Run(run).history()] == [100, 200, 203]
    assert not with_checksums or call("check", f"run={run}") == 0


def test_two_damaged_states_end_the_training(here: Path, run: Path, capfd: Capture) -> None:
    for name in ("trainer.pt", "trainer-before.pt"):
        flipped(run / name, 40_000)
    assert "is damaged, so the run cannot be resumed" in refusal(capfd, here, "train", *resumed(run, 203))


@pytest.mark.parametrize(("damaged", "steps"), [("missing", 200), ("empty", 203), ("flipped", 200), ("header", 203)])
def test_lost_best_weights_are_noticed_and_written_again(damaged: str, steps: int, run: Path, capfd: Capture) -> None:
    """Also those of a run that has used its budget."""
    best = run / "best.safetensors"
    match damaged:
        case "missing":
            best.unlink()
        case "empty":
            best.write_bytes(b"")
        case "flipped":
            flipped(best, 70_001)
        case _:
            flipped(best, 3)
    capfd.readouterr()
    assert call("train", *resumed(run, steps)) == 0
    said = f"{best} is {'missing' if damaged == 'missing' else 'damaged'}: the next validation counts as the best"
    assert said in capfd.readouterr().err
    with safetensors.safe_open(best, "pt") as file:
        assert file.keys()
    assert Run(run).best_step() == steps
    assert call("check", f"run={run}") == 0


def test_the_next_resume_clears_what_killed_saves_left(here: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves without a pause, so that every kill hits one."""
    line = words(
        text, here, "name=killed", "trainer.steps=100000", "trainer.save_minutes=0", "trainer.validate_every=3"
    )
    with monkeypatch.context() as patch:
        interrupt_at(2, patch)
        assert call("train", *line) == 143
    run = here / "killed"
    saved = checksum(run / "trainer.pt")
    program = start("train", *line, "resume=true", cwd=here)
    while checksum(run / "trainer.pt") == saved:
        assert program.poll() is None, program.communicate()
        time.sleep(0.01)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    for name in (
        ".last.safetensors.abcd1234",
        ".trainer.pt.zz_zz_99",
        ".tmpYlXaun",
    ):  # whatever the kill has left as well
        (run / name).write_bytes(b"half")
    (here / ".killed.abcd1234").mkdir()
    (run / ".mine").write_text("a user's own")
    with monkeypatch.context() as patch:
        interrupt_at(int(torch.load(run / "trainer.pt", weights_only=True)["step"]) + 2, patch)
        assert call("train", *line, "resume=true") == 143
    assert [path.name for path in run.glob(".*")] == [".mine"]
    assert not (here / ".killed.abcd1234").exists()
    assert call("check", f"run={run}") == 0
