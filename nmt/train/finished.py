"""Messages about a finished run: the budget that it has used up, and the files that can be deleted."""

from pathlib import Path

from omegaconf import DictConfig

from nmt.build.open import describes
from nmt.build.parts import build_trainer
from nmt.model.weights import lost
from nmt.runs.run import PRIVATE, Run
from nmt.training.budget import Spent


def size_note(folder: Path) -> str:
    """A note on the size of a finished run, and on the files that can be deleted before the run is shared."""
    names = [name for name in PRIVATE if (folder / name).exists()]
    files = {path.relative_to(folder): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    private = sum(size for path, size in files.items() if path.parts[0] in names)
    listed = [f"{name}/" if (folder / name).is_dir() else name for name in names]
    return (
        f"{folder} has {sum(files.values()) / 1e6:.1f} MB. {private / 1e6:.1f} MB of it are needed only for resuming "
        f"and for curves. Before you share the run, you can delete {', '.join(listed[:-1])} and {listed[-1]}."
    )


def already_finished(config: DictConfig, run: Run) -> str:
    """The message for a run that has used up its budget; "" if training can continue."""
    facts = run.facts()
    with describes(run, "a training"):
        settings = build_trainer(config)
    if facts.get("status") != "finished" or (run.best_step() is not None and lost(run.best)):
        return ""  # resuming the run writes the lost weights again
    name = settings.budget.used_up(Spent(*(facts.get(key, 0) for key in ("step", "epochs", "minutes"))))
    patient = facts.get("finished_by") == "patience"
    if name is None and patient and run.config().trainer.get("patience") == settings.patience:
        name = "patience"
    if name is None:
        return ""
    limit = getattr(settings, name)
    return (
        f"{run.folder} is already finished: trainer.{name}={limit} is reached. To train longer, raise it: "
        f"trainer.{name}={(limit or 1) * 2:.10g}."
    )
