"""Words of the command line -> overrides in Hydra's grammar."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from nmt.config import configuration
from nmt.config.configuration import literal
from nmt.config.keys import Keys, keys_of
from nmt.system.errors import UserError
from nmt.system.platform import shell_quoted
from nmt.system.terminal import visible

_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LIST_ITEM: Final = re.compile(rf"(?:\s*(?:{_QUOTED})\s*(?=,|\Z))|[^,]*", re.DOTALL)


def quote(arguments: Sequence[str], sweep: bool = False) -> list[str]:
    """Quote the values of paths and text, so that Hydra takes every character literally.

    A value that the user has quoted stays as it is. Lists (`run=[a,b]` or `run=a,b`) are split at commas outside
    quotes, unless a file has exactly that name. Quoting twice changes nothing.

    Args:
        arguments: the words of a command line.
        sweep: whether a comma between texts (`data.target=de,fr`) separates the values of several runs.

    Raises:
        UserError: a list is not closed or has an empty item; a value is `???`, which cannot be quoted.
    """
    keys = keys_of(configuration.config_folder())
    return [_quote_argument(_without_shell_quotes(argument), keys, sweep) for argument in arguments]


def _without_shell_quotes(argument: str) -> str:
    """`'key=value'` without the quotes, which cmd of Windows leaves there (UserError if it has cut the argument)."""
    if match := re.fullmatch(r"'([^'=]+=[^']*)'", argument):
        return match[1]
    if re.fullmatch(r"'[\w./@+-]+=[^']*", argument):
        raise UserError(f'{argument}: the closing quote is missing. On Windows, use double quotes: "key=a value"')
    return argument


def python() -> str:
    """Return the command of this Python, for commands that the user can paste."""
    return "python" if "python" in Path(sys.executable).name else sys.executable


def pasteable(key: str, value: object) -> str:
    """Return `key=value`, quoted for a shell."""
    return shell_word(f"{key}={value}")


def shell_word(word: str) -> str:
    """Quote a word for a shell; words with control characters are written in bash's form $'...'."""
    if visible(word) == word:
        return shell_quoted(word)
    return f"$'{''.join(map(_in_bash, word))}'"


def _in_bash(character: str) -> str:
    code = ord(character)
    if visible(character) == character:
        return f"\\{character}" if character in "\\'" else character
    if 0xDC80 <= code < 0xDD00:  # a byte of the command line that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def unquoted(argument: str) -> str:
    """Remove the quotes from a quoted `key=value`, if it has the same meaning without them."""
    typed = argument.replace("'", "")
    return typed if quote([typed]) == [argument] else argument


def _quote_argument(argument: str, keys: Keys, sweep: bool) -> str:
    key, equals, value = argument.partition("=")
    plain = key.lstrip("+")
    if not equals or plain not in keys.texts or value == "null":
        return argument
    if value == "???":  # OmegaConf's mark of a missing value, even within quotes
        raise UserError(f"{argument}: '???' cannot be a value; for a file of that name write {key}=./???")
    as_path = plain in keys.paths
    if as_path and not value:
        raise UserError(f"{key}= has no value. Perhaps a shell variable is not set. Give {key}=PATH.")
    if plain in keys.lists and not _exists(value) and _is_list(value):
        if value.startswith("[") != value.endswith("]"):
            raise UserError(
                f"{argument}: a bracket is missing. Write the list without spaces, or quote it: '{key}=[a, b]'"
            )
        return f"{key}=[{','.join(_quote_value(item, as_path) for item in _items(argument, value))}]"
    if sweep and plain not in keys.lists and not _exists(value) and _is_list(value):
        return f"{key}={','.join(_quote_value(item, as_path) for item in _items(argument, value))}"
    return f"{key}={_quote_value(value, as_path)}"


def _quote_value(value: str, as_path: bool) -> str:
    from hydra.core.override_parser.types import Quote, QuotedString

    if re.fullmatch(_QUOTED, value, re.DOTALL) and not _exists(value):
        return value
    if as_path and value.startswith("~/") and not _exists(value):
        # A shell expands `~/` at the start of a word only, not after the `=` of key=value.
        value = os.path.expanduser(value)
    return QuotedString(literal(value), Quote.single).with_quotes()


def _is_list(value: str) -> bool:
    if re.fullmatch(_QUOTED, value, re.DOTALL):
        return False
    return (value.startswith("[") and value.endswith("]")) or "," in value


def _items(argument: str, value: str) -> Iterator[str]:
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if not inner.strip():
        return
    parts = []
    position = 0
    while position <= len(inner):
        match = _LIST_ITEM.match(inner, position)
        assert match is not None  # the second branch can match the empty string
        parts.append(match[0])
        position = match.end() + 1
    start = 0
    while start < len(parts):
        # The name of an existing file may contain commas.
        stop = next(
            (stop for stop in range(len(parts), start + 1, -1) if _exists(",".join(parts[start:stop]))),
            start + 1,
        )
        item = ",".join(parts[start:stop]).strip()
        if not item:
            raise UserError(
                f"{argument}: the list has an empty item. Remove the extra comma: {argument.partition('=')[0]}=[a,b]"
            )
        yield item
        start = stop


def _exists(value: str) -> bool:
    """Whether a file has exactly this name, or this name and an ending (`DIR/train` for `DIR/train.de`)."""
    try:
        path = Path(value)
        if not value or not path.name:
            return False
        return path.exists() or (
            path.parent.is_dir() and any(name.startswith(f"{path.name}.") for name in os.listdir(path.parent))
        )
    except (OSError, ValueError):
        return False
