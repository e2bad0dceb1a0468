"""Planned contrasts: pairs of variants that differ in one setting only, and one family of tests for each setting.

A test against the baseline mixes the effect of a setting with all other differences between two variants. A pair that
differs in one setting measures this setting alone. Each family is corrected separately by Holm (1979).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from nmt.compare.significance import POWER, DifferenceTest, Noise, Runs, holm
from nmt.compare.variance import Scorer
from nmt.config.choices import is_choice, place
from nmt.evaluation.metrics import Metric

_ABSENT = object()
#: Choices whose settings count as part of the choice: a window's radius belongs to the family `attention/window`.
_WITH_SETTINGS = ("attention/score", "attention/window", "attention/normaliser", "attention/read")


class OneSetting(NamedTuple):
    """The test of two variants that differ in one setting.

    Attributes:
        first, second: the indices of the variants.
        difference: the mean of the second variant over its seeds minus the mean of the first.
        low, high: the ends of the difference's confidence interval, not corrected for multiple tests.
        error: this and all further fields as in `Contrast`, corrected for the family.
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
    """All pairs of variants that differ in one setting: the setting's key, and the tests of the pairs."""

    setting: str
    pairs: list[OneSetting]


class Joint(NamedTuple):
    """The tests of the other variants against the baseline on all test sets, joined into one text.

    Attributes:
        splits: names of the test sets.
        sentences: number of sentences in all test sets.
        judge: the metric.
        tests: the tests in the order of the variants, corrected by Holm.
        collapsed: indices of the variants whose variance over runs is not pooled (`variance.Deviations`).
    """

    splits: list[str]
    sentences: int
    judge: Metric
    tests: list[OneSetting]
    collapsed: list[int]


def factor(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """The one setting in which two variants differ; None if they differ in none or in several.

    A setting that exists for only one of two choices does not count as a second difference.
    """
    keys = dict.fromkeys([*first, *second])
    differing = [key for key in keys if first.get(key, _ABSENT) != second.get(key, _ABSENT)]
    in_both = [key for key in differing if key in first and key in second] or differing
    if len(in_both) != 1:
        return None
    setting = in_both[0]
    # Ignore differences under the choice's own key: a choice without settings is an empty node there.
    if is_choice(setting):
        differing = [key for key in differing if not f"{place(key)}.".startswith(f"{place(setting)}.")]
    if set(differing) - {setting}:
        return None
    owners = [choice for choice in _WITH_SETTINGS if setting.startswith(f"{place(choice)}.")]
    return owners[0] if owners else setting


def families(settings: Sequence[Mapping[str, Any]], runs: Sequence[Runs], scorer: Scorer, alpha: float) -> list[Family]:
    """All families of tests among the variants."""
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
    """Test pairs of variants, corrected as one family."""
    return corrected(pairs, [noise.between(*pair) for pair in pairs], alpha)


def corrected(pairs: Sequence[tuple[int, int]], tested: Sequence[DifferenceTest], alpha: float) -> list[OneSetting]:
    """Correct the tests of pairs by Holm for their number."""
    return [
        OneSetting(
            *(*pair, test.difference, *test.noise.interval(test.difference, alpha), test.noise.error, p),
            detectable=test.noise.detectable(alpha / len(pairs), POWER),
            significant=p < alpha,
            real=p < alpha and test.p_seeds is not None,
        )
        for pair, test, p in zip(pairs, tested, holm([test.p for test in tested]), strict=True)
    ]
