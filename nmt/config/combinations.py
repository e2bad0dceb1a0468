"""The combinations of values in the command line of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nmt.config import configuration
from nmt.config.composition import line_of, parse
from nmt.config.configuration import groups_of
from nmt.config.quotes import quote
from nmt.system.errors import UserError
from nmt.system.limits import written_as

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


class Combination(NamedTuple):
    """One run of a sweep.

    Attributes:
        overrides: the quoted words of its command line, with one value each.
        swept: key -> this run's value, for each word with several values, in order.
        fixed: key -> value, for the other words.
    """

    overrides: list[str]
    swept: dict[str, str]
    fixed: dict[str, str]


def expand(config_name: str, words: Sequence[str]) -> list[Combination]:
    """Every combination of the values of a sweep's command line, the last word changing fastest.

    The grammar is Hydra's: `seed=1,2,3`, `seed=range(1,4)`, `attention/score=glob(*)`, `key=choice(a,b)`; a comma
    inside quotes or brackets belongs to one value. As in Hydra, the last of two words with the same key counts.

    Raises:
        UserError: a word cannot be parsed, or has no finite list of values.
    """
    groups = groups_of(configuration.config_folder())
    values: dict[str, tuple[str, list[str], bool]] = {}
    for word in quote(words, sweep=True):
        override = parse(config_name, word, sweep=True)
        key = override.get_key_element()
        name = key.lstrip("+")
        if not override.is_sweep_override():
            values[key] = (name, [line_of(override)], False)
            continue
        swept_values = _sweep_values(override, groups)
        if not swept_values:
            raise UserError(f"'{word}': no choice matches this pattern.")
        values[key] = (name, [f"{key}={value}" for value in swept_values], True)
    lists = [
        [(key, line, _value_of(config_name, line), several) for line in lines]
        for key, lines, several in values.values()
    ]
    return [
        Combination(
            [line for _, line, _, _ in combination],
            {key: value for key, _, value, several in combination if several},
            {key: value for key, _, value, several in combination if not several},
        )
        for combination in itertools.product(*lists)
    ]


def _sweep_values(override: Override, groups: dict[str, list[str]]) -> list[str]:
    from hydra.core.override_parser.types import Glob

    value = override.value()
    if isinstance(value, Glob):
        return list(value.filter(groups.get(override.key_or_group, [])))
    if not override.is_discrete_sweep():
        raise UserError(f"'{line_of(override)}' is an interval. Write its values: {override.key_or_group}=A,B,C.")
    return list(dict.fromkeys(override.sweep_string_iterator()))


def _value_of(config_name: str, line: str) -> str:
    value = parse(config_name, line).value()
    return line.partition("=")[2] if isinstance(value, list | dict) else written_as(value)
