"""The leading process: options of a measurement, its corpus, places and files, and summaries of rounds."""

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking import crew
from benchmarking.peers import Peer, PeerError, Task, find
from benchmarking.settings import MATCHED, QUICK, WIRINGS, Json, Place, Sizes

PARTS = ("training", "transformer", "translating")


def say(text: str) -> None:
    """Print a line of progress on standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Options:
    """The options of the command lines; `--help` of the scripts explains them. None means the default of the scale.

    `pythons` has pairs of a peer's name and the Python of its environment.
    """

    quick: bool = False
    data: str | None = None
    tokenizer: str | None = None
    threads: int | None = None
    pythons: tuple[tuple[str, str | None], ...] = ()
    parts: Sequence[str] = PARTS
    devices: Sequence[str] = ("cpu",)
    precision: str = "float32"
    rounds: int | None = None
    batch: int | None = None
    updates: int | None = None
    peers: Sequence[str] = ()
    models: Sequence[str] = tuple(WIRINGS)
    compares: bool = False
    peer_updates: int | None = None


class Session:
    """A measurement: its folder with the corpus, facts about corpus and machine, places, rounds and weights."""

    def __init__(self, options: Options, folder: Path) -> None:
        """Prepare the corpus (UserError: a file or a device is missing)."""
        given = {"trained": options.updates, "peer_updates": options.peer_updates}
        known = {name: value for name, value in given.items() if value is not None}
        self.scale = replace(QUICK if options.quick else MATCHED, **known)  # type: ignore[arg-type]
        self.options, self.folder = options, folder
        self.rounds = options.rounds or (1 if options.quick else 5)
        self.data, self.log = folder / "corpus", folder / "said.txt"
        self.data.mkdir()
        self.log.touch()
        settings: Json = {"devices": [*options.devices], "threads": options.threads, "folder": self.data}
        settings |= {"data": options.data, "tokenizer": options.tokenizer, "scale": self.scale}
        facts = crew.once("prepare", settings, self.log)
        self.corpus: Json = facts["corpus"]
        self.machine: Json = facts["machine"]
        self.sizes = self.scale.sizes._replace(pieces=self.corpus["pieces"])
        self.threads = int(self.machine["threads"])
        for note in self.corpus["notes"]:
            say(note)

    def peer(self, kind: type[Peer], folder: str, sizes: Sizes, batch: int, cuda: bool = False) -> Peer | str:
        """A peer with its task, or the reason why it is not measured."""
        lines = max(self.scale.translated.values())
        languages = (self.corpus["languages"][0], self.corpus["languages"][1])
        longest = self.scale.longest
        task = Task(self.data, self.folder / folder, languages, sizes, batch, longest, self.threads, cuda, lines)
        peer = find(kind, dict(self.options.pythons).get(kind.name), task)
        say(peer if isinstance(peer, str) else f"{kind.title} {peer.version} is measured too.")
        return peer

    def places(self) -> list[Place]:
        """The places to measure: a CPU in the requested precision, a GPU in float32 and bf16."""
        places = []
        for device in self.options.devices:
            both = device != "cpu" and not self.options.compares
            kinds = ("float32", "bf16") if both else (self.options.precision,)
            places += [Place(device, precision, self.threads) for precision in kinds]
        return places

    def weights(self, place: Place, name: str) -> Path:
        """The file for the trained weights of a wiring."""
        return self.folder / f"{name}-{place.precision}-{place.device.replace(':', '')}.safetensors"

    def numbers(self) -> Iterator[str]:
        """Yield the numbers of rounds for messages: 1 of 5, 2 of 5 ..."""
        for number in range(self.rounds):
            yield f"{number + 1} of {self.rounds}"


def attempt(outcome: Json, label: str, unit: str, work: Callable[..., float], *arguments: object) -> list[float]:
    """Run a peer's round; return its speed in a list, which is empty after a failure, noted in `outcome`."""
    if "failed" in outcome:
        return []
    try:
        reached = work(*arguments)
    except PeerError as error:
        outcome["failed"] = str(error)
        say(str(error))
        return []
    say(f"{label}: {reached:,.1f} {unit}")
    return [reached]


def summary(rounds: Sequence[dict[str, float]]) -> Json:
    """The median of each key over the rounds, and in "spread" its minimum and maximum."""
    columns = {key: [entry[key] for entry in rounds] for key in rounds[0]}
    medians: Json = {key: statistics.median(values) for key, values in columns.items()}
    spread = {key: [min(values), max(values)] for key, values in columns.items()}
    return {**medians, "spread": spread, "rounds": len(rounds)}


def beside(ours: Sequence[float], theirs: Sequence[float], unit: str) -> Json:
    """The summary of a peer's rounds, and of the ratios of our speed to the peer's."""
    ratios = [{"ours_over_theirs": rate / their} for rate, their in zip(ours, theirs, strict=False)]
    return {**summary([{unit: rate} for rate in theirs]), **({"ratio": summary(ratios)} if ratios else {})}
