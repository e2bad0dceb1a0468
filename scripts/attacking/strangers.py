"""Attack with untrusted runs, which try to leave their folder, to connect, to run code, or to use up time and memory.

A Python audit hook observes all opened files, connections, programs and pickled classes.
"""

import itertools
import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from attacking.victim import Result, copy_of, run_verb, victim

#: An attempt: changes a copy of a run (first path) so that it tries to reach a folder outside (second path).
Attempt = Callable[[Path, Path], None]
SECRET = "nobody's business"
#: Maximum seconds of a command, including its start-up.
MOST_SECONDS = 60
LINKED = (
    *("config.yaml", "run.json", "overrides.json", "history.jsonl", "checksums.json", "train.log"),
    *("best.safetensors", "trainer.pt", "lexicon.safetensors", "tokenizer", "tokenizer/tokenizer.model"),
    *("evaluation", "evaluation/test", "alignments", "tensorboard"),
)
VERBS = ("translate", "evaluate", "train", "align", "check")
#: Audit events that no attempt may cause: programs, pickled classes, connections.
FORBIDDEN = (
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pickle.find_class"),
    *("socket.connect", "socket.getaddrinfo", "socket.sendto"),
)
#: Audit events that are forbidden for paths in the folder outside.
WITH_PATHS = (
    *("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod"),
    *("os.symlink", "os.link", "os.truncate"),
)


class Watch:
    """Audit hook that records forbidden events of this process while it is active."""

    def __init__(self, outside: Path, allowed: Path) -> None:
        self._outside, self._allowed = str(outside), (str(allowed), os.devnull)
        self.active, self.seen = False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event in FORBIDDEN:
            self.seen.append(f"{event} {arguments[:2]}")
        if event not in WITH_PATHS:
            return
        named = arguments[:1] if event in ("open", "os.listdir", "os.scandir") else arguments[:2]
        paths = [os.path.realpath(os.fsdecode(each)) for each in named if isinstance(each, str | bytes)]
        writes = event == "open" and bool(int(arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        elsewhere = writes and paths and not paths[0].startswith(self._allowed)
        if elsewhere or any(path.startswith(self._outside) for path in paths):
            self.seen.append(f"{event} {arguments[:2]}")


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Make the first `count` attempts, each on a new copy of a run; `seed` is not used."""
    os.environ["XDG_STATE_HOME"], os.environ["HOME"] = str(folder / "state"), str(folder / "home")
    run, place, outside = victim(folder), folder / "copy", folder / "outside"
    os.chdir(folder)  # so that the cache and temporary files are inside the folder
    tempfile.tempdir = str(folder)
    shutil.rmtree(folder / "state", ignore_errors=True)  # without this state, the run counts as made by others
    place.mkdir(exist_ok=True)
    (folder / "in.txt").write_text("Spain\n", encoding="utf-8")
    with copy_of(run, place) as copy:  # warm-up: matplotlib starts a program once to find fonts
        run_verb("evaluate", f"run={copy}", "data=run", "pictures=1")
    watch, result = Watch(outside, folder), Result("runs from strangers")
    for name, verb, change in itertools.islice(attempts(), count):
        shutil.rmtree(outside, ignore_errors=True)
        outside.mkdir()
        for language in ("en", "de"):
            (outside / f"secret.{language}").write_text(f"{SECRET}\n", encoding="utf-8")
        with copy_of(run, place) as copy:
            change(copy, outside)
            before, began = _contents(outside), time.monotonic()
            watch.seen, watch.active = [], True
            ended = run_verb(verb, *_line(verb, copy, folder))
            watch.active = False
            what, seconds = f"{name}, nmt.{verb}", time.monotonic() - began
            if watch.seen or _contents(outside) != before:
                result.fail(f"{what}: {watch.seen or 'changed what is outside'}")
            elif ended.traceback or "Traceback" in ended.errors or ended.status not in (0, 1):
                result.fail(f"{what}: status {ended.status}, {ended.traceback or ended.errors}")
            elif seconds > MOST_SECONDS:
                result.fail(f"{what}: {seconds:.0f} seconds")
            elif any(SECRET.encode() in path.read_bytes() for path in _files(copy)):
                result.fail(f"{what}: has copied a file into the run")
            else:
                result.add("refused" if ended.status else "done without what is outside")
            print(f"{what}: status {ended.status}", flush=True)
    return [result]


def _line(verb: str, run: Path, folder: Path) -> list[str]:
    """The arguments of a typical command on a run from others."""
    if verb == "train":
        return [f"name={run.name}", f"checkpoints={run.parent}", "resume=true", "trainer.steps=61"]
    more = {"translate": [f"input={folder / 'in.txt'}", f"output={folder / 'out.txt'}"], "evaluate": ["pictures=1"]}
    return [f"run={run}", *more.get(verb, [])]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def attempts() -> Iterator[tuple[str, str, Attempt]]:
    """Yield name, verb and change of each attempt: links first, then settings, code, and oversized files."""
    for number, name in enumerate(LINKED):
        usual = "evaluate" if name.startswith("evaluation") else "train"
        for verb in dict.fromkeys((VERBS[number % len(VERBS)], usual)):
            yield f"{name} is a link", verb, _linking(name)
    for name, settings, verbs in _SETTINGS:
        for verb in verbs:
            yield name, verb, _setting(settings)
    for name in ("trainer.pt", "best.safetensors", "lexicon.safetensors", "tokenizer/tokenizer.model"):
        yield (
            f"{name} is a pickle that runs a program",
            "train" if name == "trainer.pt" else "translate",
            _pickled(name),
        )
    for word in ("seed=${oc.env:HOME}", "+hydra.searchpath=[file:///]", "hydra.run.dir=/tmp/x", "cache=${oc.env:HOME}"):
        yield f"the recorded command line has {word}", "train", _recorded(word)
    for name, content in (
        ("run.json", "[" * 100_000),
        ("config.yaml", "a: " + "[" * 5_000),
        ("history.jsonl", "{" * 9),
    ):
        yield (
            f"{name} has brackets that never end",
            "translate" if name != "history.jsonl" else "train",
            _written(name, content),
        )


def _linking(name: str) -> Attempt:
    def change(run: Path, outside: Path) -> None:
        path = run / name
        if path.exists():
            shutil.move(path, outside / path.name)
        else:
            (outside / path.name).mkdir()
            path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(outside / path.name)

    return change


def _setting(settings: dict[str, Any]) -> Attempt:
    """An attempt that changes settings; OUTSIDE in a value is replaced by the forbidden folder."""

    def change(run: Path, outside: Path) -> None:
        config = OmegaConf.load(run / "config.yaml")
        for key, value in settings.items():
            text = json.dumps(value).replace("OUTSIDE", str(outside))
            OmegaConf.update(config, key, json.loads(text), merge=False, force_add=True)
        (run / "config.yaml").write_text(OmegaConf.to_yaml(config), encoding="utf-8")

    return change


_HUB = {
    "choices.data": "hub",
    "data": {"path": "attacker/x", "source": "en", "target": "de", "train": "train", "valid": None, "test": None},
}
_TEXT = {
    "choices.data": "text",
    "data": {"source": "en", "target": "de", "root": None, "train": "OUTSIDE/secret", "valid": "OUTSIDE/secret",
             "test": ["OUTSIDE/secret"], "train_links": None, "documents": None},
}  # fmt: skip
_SETTINGS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("its data set is on the network", _HUB, ("evaluate", "align", "train")),
    ("its text is a file elsewhere", _TEXT, ("evaluate", "align", "train")),
    ("its cache is elsewhere", {"cache": "OUTSIDE/cache"}, ("train", "evaluate")),
    ("its folder is elsewhere", {"checkpoints": "OUTSIDE", "name": "../../x"}, ("train", "translate")),
    ("it names code", {"encoder._target_": "os.system"}, ("translate", "train")),
    ("a choice is code", {"choices.decoder": "builtins.eval"}, ("translate", "train")),
    ("a choice is a path", {"choices.search": "../../OUTSIDE/secret"}, ("translate",)),
    ("it reads the environment", {"seed": "${oc.env:HOME}"}, ("translate", "train")),
    ("its model has a billion layers", {"encoder.layers": 10**9}, ("translate", "train")),
    ("its model needs a terabyte", {"encoder.size": 10**7, "decoder.size": 10**7}, ("translate", "train")),
    ("its built-in text is endless", {"data.train_pairs": 10**12, "data.test_pairs": 10**12}, ("evaluate", "align")),
)


class _Program:
    """Runs a program when it is unpickled."""

    def __init__(self, outside: Path) -> None:
        self.outside = outside

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.outside / 'reached'}",)


def _pickled(name: str) -> Attempt:
    return lambda run, outside: _replace(run, name, pickle.dumps(_Program(outside)))


def _written(name: str, content: str) -> Attempt:
    return lambda run, _: _replace(run, name, content.encode())


def _recorded(word: str) -> Attempt:
    def change(run: Path, _: Path) -> None:
        words = json.loads((run / "overrides.json").read_text(encoding="utf-8"))
        _replace(run, "overrides.json", json.dumps([*words, word]).encode())

    return change


def _replace(run: Path, name: str, content: bytes) -> None:
    """Replace a file, and delete the checksums, which would reveal the change."""
    (run / name).write_bytes(content)
    (run / "checksums.json").unlink()
