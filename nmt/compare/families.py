"""Contrasts by design: pairs of variants that differ in one setting only, and one family of tests for each setting.

"All against a baseline" mixes what a setting does with everything else in which two variants differ. A pair that
differs in one setting measures that setting. Every family is corrected for itself by Holm (1979).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from nmt.compare.significance import POWER, DifferenceTest, Noise, Runs, holm
from nmt.compare.variance import Scorer
from nmt.config.choices import is_choice, place
from nmt.evaluation.metrics import Metric

_ABSENT = object()
#: Choices whose own settings belong to their family: the radius of a window belongs to the windows.
_WITH_SETTINGS = ("attention/score", "attention/window", "attention/normaliser", "attention/read")


class OneSetting(NamedTuple):
    """The test of two variants, by their numbers, that differ in one setting.

    Attributes:
        difference: the second's mean over its seeds less the first's.
        low, high: the ends of its interval, at the level of the tests without correction.
        error: and the rest as in `Contrast`, corrected for the family.
    """

    first: int
    second: int
    difference: float
    low: float
    high: float
    error: float
    p: float
    detectable: float
    significant: bool
    real: bool


class Family(NamedTuple):
    """All pairs that differ in one setting: its key, and the pairs."""

    setting: str
    pairs: list[OneSetting]


class Joint(NamedTuple):
    """The tests of the other variants against the baseline on all test sets at once, as if these were one text.

    Attributes:
        splits: the names of the sets.
        sentences: how many they have together.
        judge: the metric.
        tests: in the order of the variants; corrected by Holm.
        collapsed: the variants whose runs deviate so much that they have a deviation of their own.
    """

    splits: list[str]
    sentences: int
    judge: Metric
    tests: list[OneSetting]
    collapsed: list[int]


def factor(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """The one setting in which two variants differ; None if they differ in none or in several.

    Settings that only one of two choices has are not a difference of their own.
    """
    keys = dict.fromkeys([*first, *second])
    differing = [key for key in keys if first.get(key, _ABSENT) != second.get(key, _ABSENT)]
    in_both = [key for key in differing if key in first and key in second] or differing
    if len(in_both) != 1:
        return None
    setting = in_both[0]
    # A choice without settings is an empty node in its place.
    if is_choice(setting):
        differing = [key for key in differing if not f"{place(key)}.".startswith(f"{place(setting)}.")]
    if set(differing) - {setting}:
        return None
    owners = [choice for choice in _WITH_SETTINGS if setting.startswith(f"{place(choice)}.")]
    return owners[0] if owners else setting


def families(settings: Sequence[Mapping[str, Any]], runs: Sequence[Runs], scorer: Scorer, alpha: float) -> list[Family]:
    """Every family of the variants, with its tests."""
    by_setting: dict[str, list[tuple[int, int]]] = {}
    for first, second in combinations(range(len(settings)), 2):
        setting = factor(settings[first], settings[second])
        if setting is not None:
            by_setting.setdefault(setting, []).append((first, second))
    if not by_setting:
        return []
    noise = Noise(runs, scorer)
    return [Family(setting, tests(pairs, noise, alpha)) for setting, pairs in by_setting.items()]


def tests(pairs: Sequence[tuple[int, int]], noise: Noise, alpha: float) -> list[OneSetting]:
    """The tests of pairs of variants, corrected together."""
    return corrected(pairs, [noise.between(*pair) for pair in pairs], alpha)


def corrected(pairs: Sequence[tuple[int, int]], tested: Sequence[DifferenceTest], alpha: float) -> list[OneSetting]:
    """Tests of pairs, corrected by Holm for their number."""
    return [
        OneSetting(
            *(*pair, test.difference, *test.noise.interval(test.difference, alpha), test.noise.error, p),
            detectable=test.noise.detectable(alpha / len(pairs), POWER),
            significant=p < alpha,
            real=p < alpha and test.p_seeds is not None,
        )
        for pair, test, p in zip(pairs, tested, holm([test.p for test in tested]), strict=True)
    ]
