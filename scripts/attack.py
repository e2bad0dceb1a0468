"""Attack nmt at length: flipped bits, kills, untrusted runs, and random inputs.

    python scripts/attack.py flips [count=300] [seed=1]       flipped bits in each file of a run (only=NAME: in one)
    python scripts/attack.py kills [count=50] [seed=1]        SIGKILLs in one training, at any time
    python scripts/attack.py strangers [count=60]             runs that try to leave their folder
    python scripts/attack.py fuzz [count=10000] [seed=1]      lines to translate, and files of pairs to train on
    python scripts/attack.py requests [count=30] [seed=1]     abandoned and incomplete requests to a server, other sites

Each attack prints rows of a Markdown table: its target, attempts, outcomes, and failures of nmt. If nmt fails, the
failures are listed, and the exit status is 1. folder=DIR keeps the files. `attacking/` has the attacks.
docs/reliability.md has the latest figures.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from attacking import flips, fuzz, kills, requests, strangers
from attacking.victim import Result, table
from verbs import key_values, script

from nmt.system.errors import UserError

#: Name -> function of an attack (count, seed, folder), and its default count.
ATTACKS: dict[str, tuple[Callable[..., list[Result]], int]] = {
    "flips": (flips.attack, 300),
    "kills": (kills.attack, 50),
    "strangers": (strangers.attack, 60),
    "fuzz": (fuzz.attack, 10_000),
    "requests": (requests.attack, 30),
}


def main(words: list[str]) -> int:
    """Run the attack of the command line; return the exit status."""
    if not words or words[0] not in ATTACKS:
        raise UserError(f"Give one of {', '.join(ATTACKS)}.\n{__doc__}")
    name, given = words[0], key_values(words[1:])
    attack, usual = ATTACKS[name]
    further = {"only": given.pop("only")} if name == "flips" and "only" in given else {}
    numbers = {"count": usual, "seed": 1}
    for key, value in given.items():
        if key != "folder" and (key not in numbers or not value.isdecimal()):
            raise UserError(f"{key}={value}: give count=N, seed=N or folder=DIR.")
    numbers |= {key: int(value) for key, value in given.items() if key != "folder"}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.get("folder", temporary))
        folder.mkdir(parents=True, exist_ok=True)
        results = attack(numbers["count"], numbers["seed"], folder.resolve(), **further)
    print(table(results))
    failures = [failure for result in results for failure in result.failures]
    print("".join(f"\nfailed: {failure}" for failure in failures[:20]), end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(script("attack.py", main))
