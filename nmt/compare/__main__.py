"""Compare runs, and test which differences are significant: `python -m nmt.compare`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.compare.request import Comparing, compare

    return compare(read(Comparing, config))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "compare", _work)

if __name__ == "__main__":
    sys.exit(run())
