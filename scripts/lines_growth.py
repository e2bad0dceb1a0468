"""What the lines of a test set cost: the memory of `nmt.translate` and `nmt.evaluate` by the number of lines.

    python scripts/lines_growth.py run=checkpoints/NAME source=FILE reference=FILE [lines=2000,20000] [verbs=translate]

Writes files of so many lines, which are those of the files over and over, and translates or scores them with greedy
search. Prints a Markdown table: anonymous memory at its highest (pages of mapped files are not in it), and seconds.
Further KEY=VALUE go to the command. Needs Linux.
"""

import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from data_growth import anonymous
from verbs import key_values, script

from nmt.data.lines import read_lines
from nmt.errors import UserError


def main(arguments: list[str]) -> int:
    """Measure each verb with each number of lines, and print the table."""
    given = {"lines": "2000,20000", "verbs": "translate,evaluate", **key_values(arguments)}
    if not {"run", "source", "reference"} <= given.keys():
        raise UserError(f"Give run=, source= and reference=.\n{__doc__}")
    run, counts, verbs = given.pop("run"), given.pop("lines").split(","), given.pop("verbs").split(",")
    sides = {name: read_lines(Path(given.pop(name))) for name in ("source", "reference")}
    further = [f"{key}={value}" for key, value in given.items()]
    print("| command | lines | MB | seconds |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, counts):
            for name, lines in sides.items():
                text = "".join(f"{line}\n" for line in islice(cycle(lines), count))
                Path(folder, name).write_text(text, encoding="utf-8")
            for verb in verbs:
                files = {
                    "translate": [f"input={folder}/source", f"output={folder}/translation"],
                    "evaluate": [f"source={folder}/source", f"reference={folder}/reference", f"output={folder}/scores"],
                }[verb]
                began = time.monotonic()
                memory = highest([f"nmt.{verb}", f"run={run}", *files, "search=greedy", "device=cpu", *further])
                print(f"| `nmt.{verb}` | {count:,} | {memory:,.0f} | {time.monotonic() - began:,.0f} |", flush=True)
    return 0


def highest(words: list[str]) -> float:
    """The most MB of anonymous memory that a command has had (UserError if it fails)."""
    process = subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    most = 0.0
    while process.poll() is None:
        most = max(most, anonymous(process.pid))
        time.sleep(0.05)
    if process.returncode:
        assert process.stderr is not None
        raise UserError(f"{words[0]} failed: {process.stderr.read().decode()}")
    return most


if __name__ == "__main__":
    sys.exit(script("lines_growth.py", main))
