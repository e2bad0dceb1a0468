"""Attack: flip bits in each file of a run. nmt must detect the damage, or its output must not change."""

import json
import random
from pathlib import Path

from attacking.kills import course
from attacking.victim import Ending, Result, copy_of, run_verb, victim
from nmt.system.errors import UserError

#: Files that only a resumed training reads.
STATES = ("trainer.pt", "trainer-before.pt", "last.safetensors", "history.jsonl", "overrides.json")
NOT_READ = ("train.log",)
CHECKED = "nmt.check had noticed it"


def attack(count: int, seed: int, folder: Path, only: str = "") -> list[Result]:
    """Flip `count` bits in each file of a run, or in the file `only`, one at a time, and use the run after each."""
    run, place = victim(folder), folder / "copy"
    place.mkdir(exist_ok=True)
    (folder / "in.txt").write_text("June 6, 1987\n12 kilograms\nSpain\n", encoding="utf-8")
    translated, resumed = _translate(run, folder), None
    with copy_of(run, place) as copy:
        resumed = _resume(copy)
    results = []
    files = {path.relative_to(run).as_posix(): path for path in sorted(run.rglob("*")) if path.is_file()}
    names = [name for name, path in files.items() if path.name not in NOT_READ and only in ("", name)]
    if not names:
        raise UserError(f"only={only}: there is no such file. Give one of {', '.join(files)}.")
    for name in names:
        path = files[name]
        generator, result = random.Random(f"{seed} {name}"), Result(name)
        for bit in (generator.randrange(8 * path.stat().st_size) for _ in range(count)):
            with copy_of(run, place) as copy:
                _flip(copy / name, bit)
                if name in STATES:
                    ended, same = _resume(copy), resumed
                else:
                    ended, same = _translate(copy, folder), translated
                judge(result, bit, ended, same, copy)
        results.append(result)
        print(f"{name}: {dict(result.outcomes)}, {len(result.failures)} failed", flush=True)
    return results


def _flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def _translate(run: Path, folder: Path) -> tuple[Ending, bytes]:
    output = folder / "out.txt"
    output.unlink(missing_ok=True)
    ended = run_verb("translate", f"run={run}", f"input={folder / 'in.txt'}", f"output={output}", "shortlist=20")
    return ended, output.read_bytes() if output.exists() else b""


def _resume(run: Path) -> tuple[Ending, bytes]:
    """Check a run, and resume it for two updates; return the ending, and the weights and history without times."""
    before = run_verb("check", f"run={run}")
    ended = run_verb("train", f"name={run.name}", f"checkpoints={run.parent}", "resume=true", "trainer.steps=62")
    if before.status or "If you have not edited" in before.output:
        ended = ended._replace(output=CHECKED)
    last = run / "last.safetensors"
    try:
        validations = json.dumps(course(run)).encode()
    except ValueError:
        validations = b"?"
    return ended, (last.read_bytes() if last.exists() else b"") + validations


def judge(result: Result, bit: int, ended: tuple[Ending, bytes], same: tuple[Ending, bytes] | None, run: Path) -> None:
    """Add the outcome: nmt detects the flip by an error, a warning or nmt.check, or the output is the same."""
    assert same is not None
    how, outcome = ended
    if how.traceback or "Traceback" in how.errors:
        result.fail(f"bit {bit}: {how.traceback or how.errors}")
    elif how.is_one_message:
        result.add("refused")
    elif how.status:
        result.fail(f"bit {bit}: status {how.status}: {how.errors}")
    elif "damaged" in how.errors or "missing" in how.errors:
        result.add("said, and done without the file")
    elif outcome == same[1]:
        result.add("harmless")
    elif how.output == CHECKED or "If you have not edited" in run_verb("check", f"run={run}").output:
        result.add("said by nmt.check")
    else:
        result.fail(f"bit {bit}: not noticed, and the outcome differs")
