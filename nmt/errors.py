"""What a user did wrong, said once and clearly. Every room may raise it; the verbs print it and exit with status 1."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake that the user can cure: the message names the thing and the cure."""


def nearest(name: str, options: Iterable[str], limit: int = 3) -> str:
    """Returns " Did you mean 'a' or 'b'?" with the options nearest to `name`, or "" where none is near."""
    pool = sorted({str(option) for option in options})
    found = difflib.get_close_matches(name, pool, n=limit, cutoff=0.5)
    found += [option for option in pool if name and option.startswith(name) and option not in found][:limit]
    if not found:
        return ""
    return " Did you mean " + " or ".join(f"'{option}'" for option in found[:limit]) + "?"
