"""The leading process of the measurement of quality against time: one program after the other, alone on the machine."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking import crew, peers, report
from benchmarking.crew import Case
from benchmarking.neighbours import Neighbours, load
from benchmarking.peers import Peer, PeerError
from benchmarking.session import Common, Session, say
from benchmarking.settings import MATCHED, QUICK, RECIPES, Json, Place, recipe
from nmt.errors import UserError

PROGRAMS = (*RECIPES, *(kind.name for kind in peers.PEERS))
PRECISIONS = ("float32", "bf16")
#: A machine on which more processes than this want a core is not idle.
IDLE = 0.5


@dataclass(frozen=True)
class Options(Common):
    """What the command line asks for; None leaves the choice to the measurement.

    Attributes:
        minutes: of training, a program.
        points: how often the weights are kept meanwhile.
        programs: of `PROGRAMS`.
        precisions: of `PRECISIONS`, for our own models.
        json: where results are kept after each program, and taken up.
        models: folder for the last model of each program.
    """

    minutes: float | None = None
    points: int | None = None
    programs: Sequence[str] = PROGRAMS
    precisions: Sequence[str] = ("float32",)
    json: Path | None = None
    models: Path | None = None


def run(options: Options) -> Json:
    """Measure every program that `options.json` does not hold yet and return all of them.

    Raises:
        UserError: a file is missing, a case died, or the file holds a measurement that is not this one.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-quality-") as folder:
        return _Sitting(options, Path(folder)).run()


class _Sitting(Session):
    """One sitting of the measurement."""

    def __init__(self, options: Options, folder: Path) -> None:
        scale = QUICK if options.quick else MATCHED
        scale = replace(scale, minutes=options.minutes or scale.minutes, points=options.points or scale.points)
        self.earlier = _read(options.json) if options.json is not None and options.json.exists() else None
        super().__init__(options, folder, scale)
        self.options = options

    def run(self) -> Json:
        """See `run`."""
        options, scale, earlier = self.options, self.scale, self.earlier
        results: Json = {
            "machine": self.machine,
            "corpus": self.corpus,
            "settings": {
                "model": self.sizes._asdict(),
                "batch": scale.batch,
                "minutes": scale.minutes,
                "points": scale.points,
                "quick": options.quick,
            },
            "programs": {},
        }
        if earlier is not None and options.json is not None:
            _check_same(options.json, earlier, results)
            results["machine"] = earlier["machine"]
            results["programs"] = earlier["programs"]
        if options.models is not None:
            shutil.copy(self.data / "tokenizer.model", options.models)
        self._measure(results)
        results["machine"]["load_after"] = load()
        self._keep(results)
        return results

    def _measure(self, results: Json) -> None:
        """Put the programs that are wanted and not there yet into the results."""
        wanted = [
            (name, precision)
            for name in PROGRAMS
            if name in self.options.programs
            for precision in (self.options.precisions if name in RECIPES else ("float32",))
        ]
        if (self.machine["load_before"] or 0.0) > IDLE:
            say(f"The machine is not idle (load {self.machine['load_before']}): what is measured now is too slow.")
        for name, precision in wanted:
            key = name if precision == "float32" else f"{name}-{precision}"
            if "points" in results["programs"].get(key, {}):
                models = self.options.models
                lost = models is not None and not list(models.glob(f"{key}.*"))
                say(f"{key} is measured already{f', but {models} has no model of it' if lost else ''}.")
                continue
            folder = self.folder / key
            folder.mkdir()
            measured = self._ours(key, name, precision, folder) if name in RECIPES else self._theirs(name, folder)
            results["programs"][key] = measured
            shutil.rmtree(folder)
            self._keep(results)

    def _keep(self, results: Json) -> None:
        if self.options.json is not None:
            report.write_json(self.options.json, results)

    def _ours(self, key: str, name: str, precision: str, folder: Path) -> Json:
        """Train one of our own models, then scores what it kept."""
        say(f"{key}: training for {self.scale.minutes:g} minutes")
        settings: Json = {
            "scale": self.scale,
            "sizes": self.sizes,
            "place": Place("cpu", precision, self.threads),
            "folder": self.data,
            "kept": folder,
            "recipe": recipe(name, self.corpus["name"].startswith("m30k"), self.scale),
        }
        points: list[Json] = []
        with Case("learning", settings, self.log) as case:
            learned = case.ask(train=True)
            checkpoints = learned["kept"]
            for checkpoint in checkpoints:
                scores = case.ask(translate=checkpoint["weights"])
                points.append(self._point(key, checkpoint["update"], checkpoint["minutes"], scores))
        self._leave(checkpoints[-1]["weights"], key)
        return {
            "title": RECIPES[name] + ("" if precision == "float32" else f", {precision}"),
            "version": self.machine["nmt"],
            "ours": True,
            "cores_of_others": learned["cores_of_others"],
            "points": points,
        }

    def _theirs(self, name: str, folder: Path) -> Json:
        """Has a peer train, then scores what it kept; or why there is nothing."""
        kind = next(kind for kind in peers.PEERS if kind.name == name)
        peer = self.peer(kind, folder, self.scale.batch, None, split="valid")
        if isinstance(peer, str):
            say(peer)
            return {"missing": peer}
        try:
            return {"title": peer.title, "version": peer.version, "ours": False, **self._learned(peer)}
        except PeerError as error:
            say(str(error))
            return {"version": peer.version, "failed": str(error)}

    def _learned(self, peer: Peer) -> Json:
        say(f"{peer.name}: training for {self.scale.minutes:g} minutes")
        neighbours = Neighbours()
        checkpoints = peer.learn(self.scale.minutes, self.scale.points, self.scale.pilot)
        others = neighbours.cores(peer.cpu_seconds)
        points: list[Json] = []
        for checkpoint in checkpoints:
            settings = {"folder": self.data, "split": "valid", "texts": peer.translate(checkpoint.model).texts}
            scores = crew.once("scoring", settings, self.log)
            points.append(self._point(peer.name, checkpoint.update, checkpoint.minutes, scores))
        self._leave(checkpoints[-1].model, peer.name)
        return {"cores_of_others": others, "points": points}

    def _point(self, key: str, update: int, minutes: float, scores: Json) -> Json:
        say(f"{key}: {update:,} updates, {minutes:.2f} minutes, validation BLEU {scores['bleu']:.2f}")
        return {
            "update": update,
            "minutes": minutes,
            "bleu": scores["bleu"],
            "pieces_per_sentence": scores["pieces_per_sentence"],
        }

    def _leave(self, model: Path, key: str) -> None:
        """Leave a program's last model where the benchmark can find it."""
        if self.options.models is not None:
            shutil.copy(model, self.options.models / f"{key}{model.suffix}")


def _read(path: Path) -> Json:
    """What an earlier sitting has kept (UserError if it is something else)."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(results[key], dict) for key in ("machine", "corpus", "settings", "programs")):
            return dict(results)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--json {path} cannot be taken up ({error!r}). Give the name of a new file.") from error
    raise UserError(f"--json {path} holds no measurement of this kind. Give the name of a new file.")


def _check_same(path: Path, earlier: Json, current: Json) -> None:
    """UserError unless both measure the same work on the same kind of machine."""
    kinds = {
        "settings": list(current["settings"]),
        "corpus": [key for key in current["corpus"] if key != "notes"],
        "machine": ["cpu", "cores", "threads", "torch"],
    }
    for kind, keys in kinds.items():
        for key in keys:
            was, is_now = earlier[kind].get(key), current[kind][key]
            if was != is_now:
                raise UserError(
                    f"--json {path} holds another measurement ({kind}.{key} was {was}, and is {is_now} now). "
                    f"Give the options that it had, or the name of a new file."
                )
