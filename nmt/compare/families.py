"""Contrasts by design: pairs of variants that differ in one setting only, and one family of tests for each setting.

"All against a baseline" mixes what a setting does with everything else in which two variants differ. A pair that
differs in one setting measures that setting. Every family is corrected for itself by Holm (1979).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from nmt.choices import is_choice, place
from nmt.compare.significance import POWER, Noise, Runs, holm
from nmt.compare.variance import Scorer

_ABSENT = object()
#: Choices whose own settings belong to their family: the radius of a window belongs to the windows.
_WITH_SETTINGS = ("attention/score", "attention/window", "attention/read")


class OneSetting(NamedTuple):
    """Two variants that differ in one setting, and the test of their difference.

    Attributes:
        first: index of the variant.
        second: index of the other.
        difference: the second's mean over its seeds less the first's.
        error: its standard error, over sentences and seeds.
        p: of the t with both errors, corrected for the family.
        detectable: the smallest true difference that would have been found with probability 0.8.
        significant: whether p is below the level.
        real: significant, and some variant has two seeds.
    """

    first: int
    second: int
    difference: float
    error: float
    p: float
    detectable: float
    significant: bool
    real: bool


class Family(NamedTuple):
    """All pairs that differ in one setting: its key, and the pairs."""

    setting: str
    pairs: list[OneSetting]


def factor(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """The one setting in which two variants differ; None if they differ in none or in several.

    A choice brings settings along: those in its place that only one of the two has do not count where it differs.
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
    """Every family of the variants, with its tests.

    Args:
        settings: of each variant.
        runs: of each variant.
        scorer: of the metric.
        alpha: the level.
    """
    by_setting: dict[str, list[tuple[int, int]]] = {}
    for first, second in combinations(range(len(settings)), 2):
        setting = factor(settings[first], settings[second])
        if setting is not None:
            by_setting.setdefault(setting, []).append((first, second))
    noise = Noise(runs, scorer) if by_setting else None
    found = []
    for setting, pairs in by_setting.items():
        assert noise is not None
        tests = [noise.between(*pair) for pair in pairs]
        level = alpha / len(pairs)
        found.append(
            Family(
                setting,
                [
                    OneSetting(
                        *(*pair, test.difference, test.error.size, p, test.error.detectable(level, POWER)),
                        significant=p < alpha,
                        real=p < alpha and test.p_seeds is not None,
                    )
                    for pair, test, p in zip(pairs, tests, holm([test.p for test in tests]), strict=True)
                ],
            )
        )
    return found
