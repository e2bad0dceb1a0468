"""Records of runs: everything that a comparison reads, without the weights.

A record has the format of a run folder, with fewer files.
"""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.files import write_bytes, write_json

OF_RUN = ("config.yaml", "run.json", "history.jsonl")
OF_SPLIT = ("scores.json", "hypotheses.txt", "counts.npz")
TEXT = ("source.txt", "reference.txt")
REFERENCES = "reference-*.txt"  # the second and further references
ANALYSES = ("sentences.json", "references.json", "words.json")  # measures of single sentences and words
ATTENTION_MAPS = ("attention.json",)  # weights, with the words of a few sentence pairs


def check_record(run: Run, folder: Path) -> None:
    """Raise UserError if a record in `folder` would overwrite a run, or the record that it is copied from."""
    if Run(folder).best.exists():
        raise UserError(f"records= would overwrite the run {folder}. Give another folder: records=DIR.")
    if folder.resolve() == run.folder.resolve():
        raise UserError(
            f"records= would overwrite the record {folder}, which is being compared. Give another folder: records=DIR."
        )


def record(
    run: Run, folder: Path, splits: Sequence[str] | None = None, *, text: bool = True, attention_maps: bool = True
) -> None:
    """Copy what a comparison needs from a run into `folder`; remove other files of an earlier record there.

    Absolute paths are cut to their last part. `splits` are all by default. Without `text` (sources and references),
    `nmt.compare.request` adds counts instead; `attention_maps` are the weights of a few sentence pairs.

    Raises:
        UserError: a file of the run is damaged, a file cannot be written, or the folder is a run.
    """
    check_record(run, folder)
    for each in (run, Run(folder)):
        each.check()
    splits = run.splits() if splits is None else splits
    names = OF_SPLIT + (TEXT + ANALYSES if text else ()) + (ATTENTION_MAPS if attention_maps else ())
    files = [run.folder / name for name in OF_RUN]
    files += [run.evaluation / split / name for split in splits for name in names]
    files += run.alignments.glob("*.json")
    if text:
        files += [path for split in splits for path in (run.evaluation / split).glob(REFERENCES)]
    files = [path for path in files if path.exists()]
    for path in _files_of(folder):
        if run.folder / path.relative_to(folder) not in files:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise UserError(f"Cannot remove {path} of an earlier record: {error.strerror}.") from error
    for path in files:
        copy = folder / path.relative_to(run.folder)
        if path.name == "config.yaml":
            Run(folder).write_tree(portable(run.tree()))
        elif path.suffix == ".json" and path.name not in ATTENTION_MAPS:
            tree = run.read_json(str(path.relative_to(run.folder)))
            if path.name == "run.json" and not text:
                tree.pop("examples", None)  # sentences of the validation set
            write_json(copy, portable(tree))
        else:
            write_bytes(copy, path.read_bytes())


def _files_of(folder: Path) -> list[Path]:
    """The files in the folder that may belong to a record."""
    names = {*OF_SPLIT, *TEXT, *ANALYSES, *ATTENTION_MAPS}
    of_splits = [path for path in Run(folder).evaluation.glob("*/*") if path.name in names or path.match(REFERENCES)]
    return [*(folder / name for name in OF_RUN), *of_splits, *Run(folder).alignments.glob("*.json")]


def portable(tree: Any) -> Any:
    """A configuration or facts with paths outside the run cut to their last part, and without the key "folder"."""
    if isinstance(tree, dict):
        return {key: portable(value) for key, value in tree.items() if key != "folder"}
    if isinstance(tree, list):
        return [portable(value) for value in tree]
    outside = isinstance(tree, str) and tree.startswith(("/", "~/", "../"))
    return PurePath(tree).name if outside else tree
