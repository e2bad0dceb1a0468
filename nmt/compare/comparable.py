"""Which runs, and which splits, may stand in one comparison. Stands on the results alone."""

import re
from collections.abc import Mapping, Sequence

from nmt.compare.results import Result


def comparable(results: Sequence[Result], baseline: str | None) -> tuple[list[Result], list[tuple[str, str]]]:
    """The runs that go with the baseline's (else the most that go together), and the others with the reason.

    A split on which they are not alike sets runs apart only where they would else have none in common.
    """

    def company(result: Result) -> int:
        return sum(bool(_alike(result, other)) for other in results)

    baselines = [result for result in results if baseline is not None and is_named(result, baseline)]
    centre = max(baselines or results, key=company)
    reasons = {result.name: _others(_odds(centre.origin, result.origin)) for result in results}
    alike = [result for result in results if not reasons[result.name]]
    if not any(all(name in _alike(centre, result) for result in alike) for name in centre.splits):
        split = max(centre.splits, key=lambda name: sum(name in _alike(centre, result) for result in alike))
        reasons |= {result.name: _split_odds(centre, result, split) for result in alike}
        alike = [result for result in alike if not reasons[result.name]]
    apart = [
        (result.name, f"not comparable with {centre.name}: {reasons[result.name]}")
        for result in results
        if reasons[result.name]
    ]
    return alike, apart


def _odds(origin: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """In what two origins differ; what one of them does not say is not held against it."""
    return [key for key in origin if key in other and origin[key] != other[key]]


def _others(keys: Sequence[str]) -> str:
    return ", ".join(f"another {key}" for key in keys)


def _split_odds(result: Result, other: Result, split: str) -> str:
    """Why two runs cannot be compared on a split that the first has; "" where they can."""
    if split not in other.splits:
        return f"not scored on {split}"
    return _others([f"{key} on {split}" for key in _odds(result.splits[split].origin, other.splits[split].origin)])


def _alike(result: Result, other: Result) -> list[str]:
    """The splits on which two runs can be compared."""
    if _odds(result.origin, other.origin):
        return []
    return [name for name in result.splits if not _split_odds(result, other, name)]


def common(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The splits on which all runs can be compared, and why the other splits are left out."""
    shared, notes = [], []
    for name in dict.fromkeys(name for result in results for name in result.splits):
        first = next(result for result in results if name in result.splits)
        names_by_reason: dict[str, list[str]] = {}
        for result in results:
            names_by_reason.setdefault(_split_odds(first, result, name), []).append(result.name)
        names_by_reason.pop("")
        if names_by_reason:
            why = "; ".join(f"{some(runs)} ({reason})" for reason, runs in names_by_reason.items())
            notes.append(f"{name} is left out, because some runs are not like {first.name}: {why}.")
        else:
            shared.append(name)
    return shared, notes


def some(names: Sequence[str], most: int = 6) -> str:
    """A list of names, its end counted where it is long."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def is_named(result: Result, name: str) -> bool:
    """Whether that is its name, or its name without its seed."""
    return name in (result.name, without_seed(result))


def without_seed(result: Result) -> str:
    """The name of a sweep's runs that differ in the seed alone."""
    return re.sub(rf"-(seed-)?{result.seed}$", "", result.name)
