"""The files of a training in its run folder: best and last weights, and the state for resuming.

The state is plain tensors and containers: loading it cannot execute code.
"""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from nmt.model import Seq2Seq
from nmt.model.weights import not_finite, save_weights, strange
from nmt.system.errors import UserError, is_memory_full
from nmt.system.facts import STATE as FACTS
from nmt.system.facts import fault
from nmt.system.integrity import damage, keep, replacing
from nmt.training.learner import Learner

STATE, EARLIER_STATE = "trainer.pt", "trainer-before.pt"  # the state of the last save, and of the previous save


@dataclass
class Counters:
    """The progress of a training.

    Attributes:
        step: updates.
        epoch: complete passes over the training text.
        batch: batches in the current epoch.
        seconds: training time of all sessions.
        best: the figures of the best validation; the first is the criterion.
        bad_validations: validations since the best one.
        shapes: the batch shapes of the current epoch, [rows, source, target] each; [] without fixed shapes.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    best: tuple[float, float] = (-math.inf, -math.inf)
    bad_validations: int = 0
    shapes: list[list[int]] = field(default_factory=list)


class Checkpoint:
    """The files of one training in its run folder."""

    def __init__(self, folder: Path, learner: Learner) -> None:
        self.folder, self.learner = folder, learner

    def check(self, step: int) -> None:
        """Raise UserError if weights, average or optimizer have NaN or infinity after `step` updates."""
        if name := not_finite(self.learner.state()):
            raise UserError(
                f"{name} has NaN or infinity at step {step}, so it is not saved. {self.folder} keeps what was saved "
                "before. Train again with another name= and a smaller optimizer.lr or trainer.clip_norm."
            )

    def save_best(self) -> None:
        """Write the current average as the best weights."""
        save_weights(self.folder / "best.safetensors", self.learner.averaging.best_guess)

    def save(
        self, counters: Counters, means: Sequence[float] = (), history: Sequence[Mapping[str, float]] = ()
    ) -> None:
        """Write the last weights, and the state for resuming.

        Args:
            counters: the progress.
            means: the sums since the last validation (`RunningMeans.state`).
            history: the validations.

        Raises:
            UserError: see `check`; nothing is written.
        """
        self.check(counters.step)
        save_weights(self.folder / "last.safetensors", self.learner.averaging.best_guess)
        compute = self.learner.compute
        state = {
            **self.learner.state(),
            **asdict(counters),
            "means": list(means),
            "history": [dict(entry) for entry in history],
            "identity": self.learner.model.identity,
            "rng": torch.get_rng_state(),
            "cuda_rng": [torch.cuda.get_rng_state(compute.device)] if compute.on_gpu else [],
        }
        keep(self.folder, STATE, EARLIER_STATE)
        save_state(self.folder / STATE, state)

    def restore(self, state: dict[str, Any]) -> Counters:
        """Continue from a state that `save` wrote (UserError if it is the state of another model)."""
        try:
            self.learner.restore(state)
            counters = Counters(**{each.name: state[each.name] for each in fields(Counters)})
            counters.best = tuple(state["best"])
            torch.set_rng_state(state["rng"])
            if self.learner.compute.on_gpu and state["cuda_rng"]:
                torch.cuda.set_rng_state(state["cuda_rng"][0], self.learner.compute.device)
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            if is_memory_full(error):
                raise
            raise UserError(
                f"{self.folder / 'trainer.pt'} does not fit this run: {error}. Train again with another name=."
            ) from error
        return counters

    def draws_differently(self, state: dict[str, Any]) -> bool:
        """Whether dropout cannot continue from a state, because the state is from another kind of device."""
        return bool(state["cuda_rng"]) != self.learner.compute.on_gpu


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a trainer's state, and the checksum of the file."""
    with replacing(path.parent, path.name) as temporary:
        try:
            with temporary.open("wb") as file:
                torch.save(state, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # torch's zip writer wraps the error of a full disk
                raise error.__context__ from None
            raise


def load_state(path: Path) -> dict[str, Any]:
    """Read a trainer's state; nothing in it is executed.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        if damage(path):
            raise _damaged(path)
        with zipfile.ZipFile(path) as archive:  # torch does not verify checksums
            whole = sum(each.file_size for each in archive.infolist())
            if archive.testzip() is not None or whole > path.stat().st_size:
                raise _damaged(path)
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing, so the run cannot be resumed. Train again with another name=.") from error
    except UserError:
        raise
    except Exception as error:
        raise _damaged(path) from error
    if not isinstance(state, dict):
        raise _damaged(path)
    try:
        wrong = not_finite({key: value for key, value in state.items() if key != "best"})  # `best` starts at -inf
    except (RuntimeError, RecursionError) as error:  # tensor types that cannot be checked
        raise _damaged(path) from error
    if wrong:
        raise _damaged(path, f" ({wrong} has NaN or infinity)")
    state.setdefault("shapes", [])  # missing in earlier versions, which had no fixed shapes
    return state


def check_state(path: Path, state: dict[str, Any], model: Seq2Seq) -> None:
    """Check that a state fits a model, before anything of the run is changed (UserError if not)."""
    needed = ["model", "optimizer", "averaging", "baseline", "means", "history", "identity", "rng", "cuda_rng"]
    needed += [each.name for each in fields(Counters)]
    wrong = [key for key in needed if key not in state]
    wrong += [reason for reason in [fault(state, FACTS)] if reason and not wrong]
    wrong += [] if wrong else strange(state["identity"], model)
    weights = state.get("model")
    if not wrong and isinstance(weights, dict):
        shapes = {name: weight.shape for name, weight in model.named_parameters()}
        wrong = sorted(name for name in shapes if getattr(weights.get(name), "shape", None) != shapes[name])
    if wrong:
        raise UserError(f"{path} does not fit this run: {', '.join(wrong[:3])}. Train again with another name=.")


def _damaged(path: Path, reason: str = "") -> UserError:
    return UserError(f"{path} is damaged{reason}, so the run cannot be resumed. Train again with another name=.")
