"""Selection of the comparable runs and splits, by the fingerprints in their results."""

import re
from collections.abc import Mapping, Sequence

from nmt.compare.results import Result
from nmt.compare.systems import SYSTEM


def comparable(results: Sequence[Result], baseline: str | None) -> tuple[list[Result], list[tuple[str, str]]]:
    """The runs comparable with the baseline (if None, the largest such group), and the other runs with the reason.

    A run that cannot be compared on some split is left out only if the runs have no other split in common.
    """
    baselines = [result for result in results if baseline is not None and is_named(result, baseline)]
    centre = max(baselines or results, key=lambda result: sum(bool(_shared_splits(result, other)) for other in results))
    reasons = {result.name: _differing(centre.origin, result.origin) for result in results}
    alike = [result for result in results if not reasons[result.name]]
    shared = [set(_shared_splits(centre, result)) for result in alike]
    if not set.intersection(*shared):
        split = max(centre.splits, key=lambda name: sum(name in of_run for of_run in shared))
        reasons |= {result.name: _split_reason(centre, result, split) for result in alike}
        alike = [result for result in alike if not reasons[result.name]]
    apart = [(name, f"not comparable with {centre.name}: {reason}") for name, reason in reasons.items() if reason]
    return alike, apart


def _differing(origin: Mapping[str, str], other: Mapping[str, str], where: str = "") -> str:
    """A description of the fingerprints in both origins that differ; "" if all are equal."""
    differing = [key for key in origin if key in other and origin[key] != other[key]]
    return ", ".join(f"another {key}{where}{f': {other[key]}' if key == 'search' else ''}" for key in differing)


def _split_reason(result: Result, other: Result, split: str) -> str:
    """The reason why two runs cannot be compared on a split of the first run; "" if they can be compared."""
    if split not in other.splits:
        return f"not scored on {split}"
    return _differing(result.splits[split].origin, other.splits[split].origin, f" on {split}")


def _shared_splits(result: Result, other: Result) -> list[str]:
    """The splits on which two runs can be compared."""
    if _differing(result.origin, other.origin):
        return []
    return [name for name in result.splits if not _split_reason(result, other, name)]


def common(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The splits on which all runs can be compared, and for each other split a note with the reason."""
    shared, notes = [], []
    for name in dict.fromkeys(name for result in results for name in result.splits):
        first = next(result for result in results if name in result.splits)
        names_by_reason: dict[str, list[str]] = {}
        for result in results:
            names_by_reason.setdefault(_split_reason(first, result, name), []).append(result.name)
        names_by_reason.pop("")
        if names_by_reason:
            why = "; ".join(f"{some(runs)} ({reason})" for reason, runs in names_by_reason.items())
            notes.append(f"{name} is left out, because some runs are not like {first.name}: {why}.")
        else:
            shared.append(name)
    return shared, notes


def unequal(seeds: Mapping[str, Sequence[int]]) -> list[str]:
    """A note if the variants have different seeds; `seeds` maps each variant's label to its seeds."""
    if len(set(map(tuple, seeds.values()))) < 2:
        return []
    known = [f"{label} has {', '.join(map(str, of_variant))}" for label, of_variant in seeds.items()]
    return [
        f"The variants have different seeds ({'; '.join(known)}): means, differences and the test over seeds take all "
        f"of them, the test over sentences those that both variants have (where they share none, the first of both)."
    ]


def machines(results: Sequence[Result], splits: Sequence[str]) -> list[str]:
    """Notes for training and translation speeds that were measured on different machines or numbers of threads."""
    results = [result for result in results if SYSTEM not in result.settings]
    trained = sorted({result.training_machine or "unknown" for result in results})
    notes = []
    if len(trained) > 1:
        notes.append(f"Training speeds are from different machines or threads: {'; '.join(trained)}.")
    for split in splits:
        measured = [result.splits[split].measured for result in results]
        used = sorted({f"{row.get('device', 'unknown')}, {row.get('threads', 'unknown')} threads" for row in measured})
        if len(used) > 1:
            notes.append(f"Translation speeds on {split} are from different machines or threads: {'; '.join(used)}.")
    return notes


def some(names: Sequence[str], most: int = 6) -> str:
    """Join names by commas; after the first `most` names, only the number of further names is given."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def is_named(result: Result, name: str) -> bool:
    """Whether `name` is the run's name, with or without the seed."""
    return name in (result.name, without_seed(result))


def without_seed(result: Result) -> str:
    """The name of a run without its seed; all seeds of a sweep's variant share this name."""
    return re.sub(rf"-(seed-)?{result.seed}$", "", result.name)
