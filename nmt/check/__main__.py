"""Check the files of a run for damage: `python -m nmt.check`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.check.work import Checking, check

    return check(read(Checking, config))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "check", _work)

if __name__ == "__main__":
    sys.exit(run())
