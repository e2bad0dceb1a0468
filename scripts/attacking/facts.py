"""Facts that nobody would write, in each JSON file of a run: a verb works, or ends with one message, in seconds."""

import contextlib
import io
import json
import random
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attacking.victim import Result, Said, copy_of, said, victim
from nmt.hub import HubTranslator
from nmt.runs.run import Run
from nmt.system.errors import UserError

#: JSON values of every type, at and beyond limits.
VALUES = (
    *("NaN", "Infinity", "-Infinity", "1e300", "-1e300", "1e999", "1" * 400, "-" + "9" * 400, "9007199254740993"),
    *("-3", "0", "-1", "1", "0.5", "1e6", "true", "false", "null", '""', '"x"', '"\\ud800"', '"\\u0000"', '"a/../b"'),
    *('"' + "x" * 10_000 + '"', "[]", "[1]", "[[]]", "{}", '{"a":1}', "[" * 400 + "]" * 400, "[null,true,[],{}]"),
)
MOST_SECONDS = 60
_MARK = "@place of the value@"


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Change `count` facts, one at a time, and use the run after each in one way."""
    run, place = victim(folder), folder / "copy"
    place.mkdir(exist_ok=True)
    (folder / "in.txt").write_text("Spain\n", encoding="utf-8")
    if failure := said("evaluate", f"run={run}", "pictures=0", "threads=1", "device=cpu").traceback:
        raise RuntimeError(failure)
    generator, results = random.Random(seed), {name: Result(f"facts of {name}") for name in USES}
    for number in range(count):
        name = generator.choice([*USES])
        use = generator.choice(USES[name])
        with copy_of(run, place) as copy:
            path = next(copy.rglob(name))
            if generator.random() < 0.5 and name != "checksums.json":
                (copy / "checksums.json").unlink()
            where = _change(path, generator)
            what = f"attempt {number}, {where}, {use}"
            began = time.monotonic()
            ended = _used(use, copy, run, folder)
            seconds = time.monotonic() - began
            said_so = ended.is_one_message or (use == "check" and ended.status == 1 and "not whole" in ended.output)
            if ended.traceback or ended.status not in (0, 1) or (ended.status == 1 and not said_so):
                results[name].fail(f"{what}: {ended.traceback or ended.errors}")
            elif seconds > MOST_SECONDS:
                results[name].fail(f"{what}: {seconds:.0f} seconds")
            else:
                results[name].add("refused" if ended.status else "used")
    return [*results.values()]


def _change(path: Path, generator: random.Random) -> str:
    """Replace or remove one value at any depth; return where."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
    at = generator.randrange(len(lines))
    tree = json.loads(lines[at])
    holder, key = generator.choice([*_places(tree)])
    value = generator.choice(VALUES)
    if generator.random() < 0.1:
        del holder[key]
        value = "removed"
    else:
        holder[key] = _MARK
    lines[at] = json.dumps(tree).replace(f'"{_MARK}"', value)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"{key}={value[:40]}"


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in containers, as its container and its key."""
    for key in [*tree] if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from _places(tree[key])


def _used(use: str, copy: Path, run: Path, folder: Path) -> Said:
    line = ["threads=1", "device=cpu"]
    match use:
        case "translate":
            return said("translate", f"run={copy}", f"input={folder / 'in.txt'}", *line)
        case "evaluate" | "align":
            return said(use, f"run={copy}", "data=run", *line)
        case "check":
            return said("check", f"run={copy}")
        case "train":
            more = ("resume=true", "trainer.steps=62")
            return said("train", f"name={copy.name}", f"checkpoints={copy.parent}", *more)
        case "compare":
            few = ("pictures=0", "sentences=2", f"output={folder / 'comparison'}", "evaluate=false")
            return said("compare", f"runs=[{run},{copy}]", *few, *line)
        case "card":
            return _in_python(lambda: HubTranslator(copy, *line).generate_model_card())
        case _:
            return _in_python(lambda: _served(copy, run, line))


def _served(copy: Path, run: Path, line: list[str]) -> None:
    """What the server says of the run, as JSON."""
    from nmt.serve.corpus_rows import described
    from nmt.serve.description import describe

    translator = HubTranslator(copy, *line)._translator
    documents = [describe(Run(copy), translator), described(Run(copy), None, Run(run))]
    json.dumps(documents, allow_nan=False, ensure_ascii=False).encode()


def _in_python(work: Callable[[], object]) -> Said:
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            work()
    except UserError as error:
        return Said(1, "", f"nmt.: {error}")
    except Exception:
        return Said(-1, "", "", traceback.format_exc())
    return Said(0, "", "")


#: Who reads the facts of each file.
USES = {
    "run.json": ("translate", "evaluate", "align", "check", "train", "compare", "card", "serve"),
    "history.jsonl": ("check", "train", "compare", "serve"),
    "scores.json": ("compare", "card", "serve", "check"),
    "sentences.json": ("compare", "serve"),
    "references.json": ("compare",),
    "words.json": ("compare",),
    "attention.json": ("compare", "serve"),
    "overrides.json": ("train", "check"),
    "checksums.json": ("translate", "check"),
}
