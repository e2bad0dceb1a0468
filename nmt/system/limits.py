"""Types and limits of settings: type hints of constructors define them, and this module checks them.

def __init__(self, size: Positive, dropout: Fraction, cell: Literal["gru", "lstm"], steps: Positive | None): ...
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from nmt.system.errors import SettingError, UnknownSettingError, nearest

Part = TypeVar("Part")


class Limit(NamedTuple):
    """A limit on the values of a setting; `rule` describes it, as the continuation of "must be"."""

    holds: Callable[[Any], bool]
    rule: str
    names: tuple[str, ...] = ()


def at_least(least: float) -> Limit:
    """The value is `least` or more."""
    return Limit(lambda value: value >= least, f"at least {least}")


def between(low: float, high: float) -> Limit:
    """The value is from `low` to `high`, both included."""
    return Limit(lambda value: low <= value <= high, f"from {low:,} to {high:,}")


def one_of(*names: str) -> Limit:
    """The value is one of these names."""
    return Limit(lambda value: value in names, _either(names), names)


Positive = Annotated[int, at_least(1)]
# Layers of a model; a typing error of many digits would otherwise build layers for ever.
Layers = Annotated[int, between(1, 1000)]
NotNegative = Annotated[int, at_least(0)]
#: The range of seeds that all random generators accept.
Seed = Annotated[int, between(0, 2**32 - 1)]
Amount = Annotated[float, Limit(lambda value: value > 0, "greater than 0")]
Weight = Annotated[float, at_least(0)]
Probability = Annotated[float, between(0, 1)]
# A probability below 1, such as dropout or label smoothing.
Fraction = Annotated[float, Limit(lambda value: 0 <= value < 1, "at least 0 and less than 1")]

# The Python types of a setting's type, and its name in messages.
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int, float), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
    Path: ((str, Path), "a path"),
    NoneType: ((NoneType,), "null"),
    list: ((list, tuple), "a list, written [a,b]"),
}


def checked(constructor: Callable[..., Part], settings: Mapping[str, Any], key: str = "") -> Callable[..., Part]:
    """Bind settings to a constructor, after checking each setting against the type hint of its parameter.

    A `SettingError` that the constructor itself raises gets the key, too.

    Args:
        constructor: a class. Pass its other arguments to the returned function.
        settings: values by name of the parameter.
        key: the place of the settings in the configuration, for messages.

    Raises:
        UserError: a setting is unknown, or a value is invalid.
    """
    known = inspect.signature(constructor).parameters
    for name in settings:
        if name not in known:
            setting = f"{key}.{name}" if key else name
            takes = f"It takes {', '.join(known)}."
            raise UnknownSettingError(
                f"{setting} is not a setting of {constructor.__name__}.{nearest(name, known)} {takes}"
            )
    hints = hints_of(constructor)
    values = {name: taken(name, value, hints.get(name, Any), key) for name, value in settings.items()}

    @functools.wraps(constructor, updated=())
    def construct(*parts: Any, **others: Any) -> Part:
        try:
            return constructor(*parts, **values, **others)
        except SettingError as error:
            raise error.at(key) from error

    return construct


def taken(name: str, value: Any, hint: Any, key: str | None = None) -> Any:
    """Convert the value of a setting to the type of a type hint; see `fitted`.

    Raises:
        SettingError: the value has the wrong type or is out of range.
    """
    try:
        return fitted(value, hint)
    except ValueError as error:
        near = nearest(value, _names(hint)) if isinstance(value, str) else ""
        raise SettingError(name, written_as(value), f"{error}.{near}", key) from error


@functools.cache
def hints_of(constructor: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of a constructor's parameters; {} if they name types that cannot be imported."""
    try:
        return get_type_hints(
            constructor.__init__ if inspect.isclass(constructor) else constructor, include_extras=True
        )
    except NameError:
        return {}


def fitted(value: Any, hint: Any) -> Any:
    """Convert a value to the type of a type hint, such as 1e4 to 10000 for an int.

    Raises:
        ValueError: the value is invalid; the message is the rule.
    """
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    broken = list[str]()
    for option in options:
        kind, limits = _parted(option)
        if _is_of(value, kind):
            broken_here = [limit.rule for limit in limits if not limit.holds(value)]
            if not broken_here:
                return kind(value) if kind in (int, Path) else value
            broken += broken_here
    rules = broken or [_rule(option) for option in options if option is not NoneType]
    rule = f"must be {_either(rules)}{', or null' if NoneType in options else ''}"
    endless = isinstance(value, float) and not math.isfinite(value)
    raise ValueError(rule.replace("a number", "a finite number") if endless else rule)


def _parted(hint: Any) -> tuple[Any, list[Limit]]:
    """The type and the limits of a type hint that is not a union."""
    if get_origin(hint) is not Annotated:
        return hint, []
    kind, *notes = get_args(hint)
    return kind, [note for note in notes if isinstance(note, Limit)]


def _is_of(value: Any, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Any:
        return True
    if origin is Literal:
        return value in get_args(kind)
    if origin in (list, Sequence, tuple):
        return isinstance(value, list | tuple) and _are_of(list(value), kind)
    if origin not in _KINDS:
        return not inspect.isclass(origin) or isinstance(value, origin)
    if origin in (int, float):  # not bool
        return type(value) in (int, float) and math.isfinite(value) and (origin is float or value == int(value))
    return isinstance(value, _KINDS[origin][0])


def _are_of(items: list[Any], kind: Any) -> bool:
    hints = get_args(kind) or (Any,)
    if get_origin(kind) is tuple and hints[-1] is not Ellipsis:
        return len(items) == len(hints) and all(map(_fits, items, hints))
    return all(_fits(item, hints[0]) for item in items)


def _fits(value: Any, hint: Any) -> bool:
    try:
        fitted(value, hint)
    except ValueError:
        return False
    return True


def _rule(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return _either([_rule(option) for option in get_args(hint)])
    kind, limits = _parted(hint)
    if get_origin(kind) is Literal:
        return _either([str(name) for name in get_args(kind)])
    if any(limit.names for limit in limits):
        return limits[0].rule
    origin = get_origin(kind) or kind
    listed = origin in (list, Sequence, tuple)
    words = _KINDS[list if listed else origin][1] if listed or origin in _KINDS else getattr(origin, "__name__", origin)
    items = get_args(kind) if listed else ()
    if origin is tuple and items[-1] is not Ellipsis:
        words = f"a list of {len(items)}, written [a,b]"
    each = [f"each {_rule(item)}" for item in items[:1] if item is not Any]
    return ", ".join([words, *each, *(limit.rule for limit in limits)])


def _names(hint: Any) -> list[str]:
    """The names that a type hint allows as values."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    parts = [_parted(option) for option in options]
    literal = [str(name) for kind, _ in parts if get_origin(kind) is Literal for name in get_args(kind)]
    return literal + [name for _, limits in parts for limit in limits for name in limit.names]


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def written_as(value: Any) -> str:
    """The value in the notation of the command line."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return f"[{','.join(map(written_as, value))}]" if isinstance(value, list | tuple) else str(value)
