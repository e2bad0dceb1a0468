"""Many clients at a server for a while: are all answers right, and what does batching gain?

    python -m nmt.serve run=checkpoints/NAME queue_pieces=3000       # on an idle machine
    python scripts/load_test.py input=FILE clients=64 seconds=60 [address=http://127.0.0.1:8765/] [process=PID]

First it asks for each sentence alone, one client at a time, which gives the expected answers and the speed to compare
with. Then it asks with all clients at once, and last with one client again. Every answer must be the expected one or a
503 with Retry-After, which the client obeys. The exit status is 1 if an answer is wrong or missing. With the server's
process ID, the highest anonymous memory of each phase is printed (Linux).
"""

import json
import random
import statistics
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from data_growth import anonymous
from verbs import key_values, script

from nmt.errors import UserError

ADDRESS = "http://127.0.0.1:8765/"


class Load(NamedTuple):
    """What a phase saw: seconds of each right answer, the number of 503s, wrong answers, its length, memory in MB."""

    latencies: list[float]
    refused: int
    wrong: list[str]
    seconds: float
    memory: list[float]

    @property
    def speed(self) -> float:
        """Right answers per second."""
        return len(self.latencies) / self.seconds

    def line(self, name: str) -> str:
        """One line of the report."""
        ordered = sorted(self.latencies)
        middle = 1000 * statistics.median(ordered) if ordered else float("nan")
        late = 1000 * ordered[int(0.99 * (len(ordered) - 1))] if ordered else float("nan")
        return (
            f"{name:<14} {self.speed:8.1f} requests/s   p50 {middle:7.0f} ms   p99 {late:7.0f} ms   "
            f"{len(self.latencies)} right, {self.refused} times 503, {len(self.wrong)} wrong"
            + (f"   at most {max(self.memory):,.0f} MB" if self.memory else "")
        )


def ask(address: str, sentence: str) -> tuple[str | None, float]:
    """The translation, or None with the seconds to wait."""
    data = json.dumps({"text": sentence, "include": []}).encode()
    request = urllib.request.Request(f"{address}v1/translate", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            document: Any = json.load(answer)
        return str(document["translations"][0]["hypotheses"][0]["text"]), 0.0
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 503:
                raise UserError(f"{address} answers {error.code}: {error.read().decode()}") from error
            return None, float(error.headers["Retry-After"])
    except OSError as error:
        raise UserError(f"{address} does not answer ({error}). Start it: python -m nmt.serve run=...") from error


def load(address: str, expected: dict[str, str], clients: int, seconds: float, process: int | None) -> Load:
    """Ask with so many clients for so long, and watch the memory of the process."""
    latencies: list[float] = []
    wrong: list[str] = []
    refused = [0]
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        choose = random.Random(number)
        sentences = list(expected)
        while time.monotonic() < end:
            sentence = choose.choice(sentences)
            began = time.monotonic()
            try:
                translation, wait = ask(address, sentence)
            except UserError as error:
                wrong.append(str(error))
                return
            if translation is None:
                refused[0] += 1
                time.sleep(min(wait, max(0.0, end - time.monotonic())))
            elif translation == expected[sentence]:
                latencies.append(time.monotonic() - began)
            else:
                wrong.append(f"{sentence!r} gave {translation!r}, not {expected[sentence]!r}")

    began = time.monotonic()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    memory = []
    for thread in threads:
        while thread.is_alive():
            memory += [] if process is None else [anonymous(process)]
            thread.join(0.5)
    return Load(latencies, refused[0], wrong, time.monotonic() - began, memory)


def main(words: Sequence[str]) -> int:
    """Run the phases, print their figures and return the exit status."""
    settings = {"clients": "64", "seconds": "60", "sentences": "200", "address": ADDRESS, **key_values(words)}
    if "input" not in settings:
        raise UserError("input=FILE is missing: sentences, one per line.")
    try:
        lines = Path(settings["input"]).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UserError(f"input={settings['input']}: {error.strerror}.") from error
    sentences = list(dict.fromkeys(line.strip() for line in lines if line.strip()))[: int(settings["sentences"])]
    if not sentences:
        raise UserError(f"input={settings['input']} has no sentences.")
    address, clients, seconds = settings["address"], int(settings["clients"]), float(settings["seconds"])
    expected = {sentence: ask(address, sentence)[0] or "" for sentence in sentences}
    process = int(settings["process"]) if "process" in settings else None
    phases: dict[str, Load] = {}
    plan = {"one client": (1, seconds / 3), f"{clients} clients": (clients, seconds), "one again": (1, seconds / 3)}
    for name, (several, long) in plan.items():
        phases[name] = load(address, expected, several, long, process)
        print(phases[name].line(name))
    one, many, _ = phases.values()
    print(f"batching: {many.speed / one.speed if one.speed else float('nan'):.2f} times the requests per second")
    wrong = [message for phase in phases.values() for message in phase.wrong]
    for message in wrong[:10]:
        print(f"wrong: {message}")
    return 1 if wrong or not many.latencies else 0


if __name__ == "__main__":
    sys.exit(script("load_test.py", lambda words: main(words)))
