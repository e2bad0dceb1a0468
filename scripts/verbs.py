"""Functions that scripts share: run commands of nmt, parse KEY=VALUE arguments, and report errors."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from nmt.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


def verb(name: str, *words: str) -> int:
    """Run the command `nmt.NAME`; return its exit status as a shell does: 128 + the signal that ended it.

    Ctrl-C is left to the command, which may save its state first. The package need not be installed.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen([sys.executable, "-m", f"nmt.{name}", *words], env=environment) as process:
        while process.poll() is None:
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def key_values(words: Sequence[str], known: Collection[str] = ()) -> dict[str, str]:
    """Parse KEY=VALUE words (UserError for a word of another form, or a key that is not `known`)."""
    for word in words:
        if "=" not in word:
            raise UserError(f"{word} says not what it is: write KEY={word}.")
    given = dict(word.split("=", 1) for word in words)
    if known and (unknown := sorted(given.keys() - known)):
        raise UserError(f"{unknown[0]}= does not exist; choose of {', '.join(sorted(known))}.")
    return given


def script(name: str, main: Callable[[list[str]], int]) -> int:
    """Run a script with the command line; return its exit status. A UserError becomes a one-line message."""
    try:
        return main(sys.argv[1:])
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command goes on.", file=sys.stderr)
        return 130
