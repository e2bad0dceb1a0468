"""Translations of other programs as results, for comparison with runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.compare.results import Result, RunOnSplit, counted
from nmt.data.dataset import Split
from nmt.data.lines import read_lines
from nmt.evaluation import metrics
from nmt.evaluation.metrics import exact_share, judge
from nmt.system.errors import UserError
from nmt.text.scripts import language_by_script, lengths

#: Key of the only setting of another program's result; the value is the program's name.
SYSTEM = "system"


def check_named(setting: str, values: object) -> None:
    """Raise UserError if the value of a setting is not a mapping with names as keys."""
    if not isinstance(values, Mapping):
        raise UserError(f"{setting}={values}: give a name for each, as in {setting}={{NAME: ...}}.")
    for name in values:
        if not isinstance(name, str) or not name.strip():
            raise UserError(f"{setting}: {name!r} is not a name. Write it in quotes.")


def files_of(systems: Mapping[str, Any]) -> dict[str, Path]:
    """The files of systems by a name for messages (UserError: a value is not a file or a list of files)."""
    files: dict[str, Path] = {}
    for name, paths in systems.items():
        listed = [paths] if isinstance(paths, str) else paths
        if not isinstance(listed, list) or not listed or not all(isinstance(path, str) for path in listed):
            raise UserError(f"systems.{name}={paths}: must be a file of translations, or a list of files, one a seed.")
        files |= {f"systems.{name} ({seed})": Path(path) for seed, path in enumerate(listed, 1)}
    return files


def read_systems(systems: Mapping[str, Any], results: Sequence[Result], given: Split | str | None) -> Iterator[Result]:
    """Read and score the translations of other programs.

    Args:
        systems: {name of a program: a file of translations, or a list with a file for each seed}.
        results: results of runs; may be empty if the text is given.
        given: the text that was translated, or the name of its split; None for the only split that all runs share.

    Raises:
        UserError: the text is unknown, or a file cannot be read or does not have one line for each sentence.
    """
    split, language = _text(results, given)
    taken = {result.name for result in results}
    for name, paths in systems.items():
        files = files_of({name: paths}).values()
        for seed, path in enumerate(files, 1):
            called = name if len(files) == 1 else f"{name}-{seed}"
            if called in taken:
                raise UserError(f"systems.{name}: a run or a system is called {called} already. Give another name.")
            taken.add(called)
            yield Result(called, seed, {SYSTEM: name}, {}, {}, [], {split.name: _scored(path, split, language)})


def _text(results: Sequence[Result], given: Split | str | None) -> tuple[Split, str]:
    """The text that the programs translated, and its target language code or "" (UserError if the text is unknown)."""
    if isinstance(given, Split):
        known = [result.splits[given.name].target_language for result in results if given.name in result.splits]
        return given, next(iter(known), language_by_script(given.target, ""))
    shared = [name for name in results[0].splits if all(name in result.splits for result in results)] if results else []
    names = [name for name in shared if given in (None, name)]
    if len(names) != 1:
        ways = f"split= with one of {', '.join(shared)}, or " if shared else ""
        raise UserError(f"systems= has translations of one text. Say which: give {ways}source=FILE reference=FILE.")
    first = results[0].splits[names[0]]
    if first.sources is None or first.references is None:
        raise UserError(
            f"{results[0].name} is a record without the text of {names[0]}, which systems= needs. Give source=FILE "
            "reference=FILE."
        )
    return Split(names[0], first.sources, first.references, others=first.others), first.target_language


def _scored(path: Path, split: Split, language: str) -> RunOnSplit:
    """Score a file of translations in the same way as a run's."""
    hypotheses = read_lines(path)
    if len(hypotheses) != len(split.source):
        raise UserError(
            f"{path} has {len(hypotheses):,} lines, but {split.name} has {len(split.source):,} sentences. Give one "
            "translation a line, in the order of the sentences."
        )
    references, others = list(split.target), [list(lines) for lines in split.others]
    scores = metrics.score(hypotheses, references, language, others)
    of_metrics = {"bleu": scores.bleu, "chrf": scores.chrf, "ter": scores.ter}
    counts = counted(hypotheses, references, language, of_metrics, others)
    sizes, unit, _ = lengths(list(split.source))
    signatures = {f"{metric} signature": score.signature for metric, score in of_metrics.items()}
    return RunOnSplit(list(split.source), references, hypotheses, sizes, unit, of_metrics, counts, {}, [])._replace(
        origin={"text": split.fingerprint(), **signatures},
        others=others,
        judged_by=judge(counts["bleu"][:, 1]),
        exact=exact_share(hypotheses, references, *others),
        target_language=language,
    )
