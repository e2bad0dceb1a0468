"""Compare runs, and test which differences are significant: `python -m nmt.compare`."""

import sys
from typing import Any

from nmt.config.program import command


@command("compare")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.compare.request import Comparing, compare

    return compare(read(Comparing, config))


if __name__ == "__main__":
    sys.exit(run())
