"""The leading process: what a measurement starts from, and where its parts are."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking import crew
from benchmarking.peers import Peer, Task, find
from benchmarking.settings import MATCHED, QUICK, Json, Place, Scale, Sizes

PARTS = ("training", "transformer", "translating")


def say(text: str) -> None:
    """Show how far it is, on standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Common:
    """What the command line of either measurement asks for; None leaves the choice to it.

    Attributes:
        quick: tiny sizes.
        data: folder with Multi30k.
        tokenizer: SentencePiece model.
        threads: CPU threads.
        pythons: of the peers' environments, by the peer's name.
    """

    quick: bool = False
    data: str | None = None
    tokenizer: str | None = None
    threads: int | None = None
    pythons: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Options(Common):
    """What the command line of the benchmark asks for.

    Attributes:
        parts: of `PARTS`.
        devices: cpu, cuda or cuda:N.
        precision: of what is measured on the CPU, "float32" or "bf16"; peers are measured beside float32 alone.
        rounds: how often everything is measured.
        batch: sentences a training batch; None for those of the scale, and 512 on a GPU.
        updates: that a model has had before it translates.
        peers: whether other programs are measured too.
        peer_updates: of a peer, in a round.
    """

    parts: Sequence[str] = PARTS
    devices: Sequence[str] = ("cpu",)
    precision: str = "float32"
    rounds: int | None = None
    batch: int | None = None
    updates: int | None = None
    peers: bool = False
    peer_updates: int | None = None


class Session:
    """A folder with the corpus, and what is known of corpus and machine."""

    def __init__(self, common: Common, folder: Path, scale: Scale, devices: Sequence[str] = ("cpu",)) -> None:
        """Prepare the corpus (UserError: a file or a device is missing)."""
        self.folder, self.scale, self._pythons = folder, scale, dict(common.pythons)
        self.data, self.log = folder / "corpus", folder / "said.txt"
        self.data.mkdir()
        self.log.touch()
        facts = crew.once(
            "prepare",
            {
                "devices": list(devices),
                "threads": common.threads,
                "folder": self.data,
                "data": common.data,
                "tokenizer": common.tokenizer,
                "scale": scale,
            },
            self.log,
        )
        self.corpus: Json = facts["corpus"]
        self.machine: Json = facts["machine"]
        self.sizes = scale.sizes._replace(pieces=self.corpus["pieces"])
        self.threads = int(self.machine["threads"])
        for note in self.corpus["notes"]:
            say(note)

    def peer(
        self,
        kind: type[Peer],
        folder: Path,
        batch: int,
        lines: int | None,
        cuda: bool = False,
        split: str = "test",
        sizes: Sizes | None = None,
    ) -> Peer | str:
        """A peer with its task (see `Task`), or why it is not there; `sizes` None are the matched model's."""
        sizes = sizes or self.sizes
        source, target = self.corpus["languages"]
        task = Task(
            self.data, folder, (source, target), sizes, batch, self.scale.longest, self.threads, cuda, lines, split
        )
        return find(kind, self._pythons.get(kind.name), task)


class Benchmark(Session):
    """The session of the benchmark: its options, places, rounds and weights."""

    def __init__(self, options: Options, folder: Path) -> None:
        """Prepare the corpus (UserError as `Session`)."""
        scale = QUICK if options.quick else MATCHED
        scale = replace(
            scale,
            trained=scale.trained if options.updates is None else options.updates,
            peer_updates=scale.peer_updates if options.peer_updates is None else options.peer_updates,
        )
        super().__init__(options, folder, scale, options.devices)
        self.options = options
        self.rounds = options.rounds or (1 if options.quick else 5)

    def places(self) -> list[Place]:
        """Where everything is measured: on a CPU in the precision that is asked for, on a GPU in both."""
        places = []
        for device in self.options.devices:
            kinds = (self.options.precision,) if device == "cpu" else ("float32", "bf16")
            places += [Place(device, precision, self.threads) for precision in kinds]
        return places

    def weights(self, place: Place, name: str) -> Path:
        """The trained weights of a wiring."""
        return self.folder / f"{name}-{place.precision}-{place.device.replace(':', '')}.safetensors"

    def numbers(self) -> Iterator[str]:
        """The rounds as the user sees them: 1 of 5, 2 of 5 ..."""
        for number in range(self.rounds):
            yield f"{number + 1} of {self.rounds}"
