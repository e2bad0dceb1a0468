"""Check the files of a run for damage: `python -m nmt.check`."""

import sys
from typing import Any

from nmt.config.program import command


@command("check")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.check.work import Checking, check

    return check(read(Checking, config))


if __name__ == "__main__":
    sys.exit(run())
