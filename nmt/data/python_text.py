"""Texts that a Python program passes in any kind of list; errors name the position of an invalid value."""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from nmt.system.errors import UserError


def texts(values: object, name: str) -> list[str]:
    """The lines of text in a list, a tuple, an iterator, an array or a column, which is called `name` in errors.

    Raises:
        TypeError: `values` is a single text, a table or not a list, or a value in it is not text.
        UserError: see `text`.
    """
    return [text(value, f"{name}[{at}]") for at, value in enumerate(values_of(values, name))]


def lists_of_texts(values: object, name: str) -> list[list[str]]:
    """The lines of text in a list of lists; see `texts`."""
    return [texts(value, f"{name}[{at}]") for at, value in enumerate(values_of(values, name))]


def values_of(values: object, name: str) -> Iterator[object]:
    """Iterate over the values of a list (TypeError if `values` is not a list)."""
    # Iterating over a table would give the names of its columns.
    if not isinstance(values, str | bytes | Mapping | Set) and not hasattr(values, "columns"):
        try:
            return iter(values)  # type: ignore[call-overload, no-any-return]
        except TypeError:
            pass
    raise TypeError(f"{name}: {_kind(values)}, not a list. Give a list of sentences, such as [sentence], or a column.")


def text(value: object, name: str) -> str:
    """One line of text, which is called `name` in errors.

    Raises:
        TypeError: it is not text.
        UserError: it has a line break, or half a surrogate pair.
    """
    value = value.as_py() if hasattr(value, "as_py") else value  # an Arrow scalar
    if not isinstance(value, str):
        raise TypeError(f"{name}: {_kind(value)}, not text.")
    if "\n" in value or "\r" in value:
        raise UserError(f"{name}: has a line break. Give a list with one line in each text.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{name}: character {error.start + 1} is half a surrogate pair. Give valid Unicode.") from error
    return str(value)


def check_mapping(values: object, name: str) -> None:
    """Raise TypeError if a mapping, called `name`, has a value that is neither text nor a list of texts."""
    if not isinstance(values, Mapping):
        if values is None or isinstance(values, str | Path):
            return
        raise TypeError(f"{name}: {_kind(values)}, neither a file nor a mapping of texts.")
    for key, value in values.items():
        text(key, f"a key of {name}")
        for each in value if isinstance(value, list | tuple) else [value]:
            text(each, f"{name}[{key!r}]")


def _kind(value: object) -> str:
    """The type of a value with an article, for messages: "a float"."""
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
