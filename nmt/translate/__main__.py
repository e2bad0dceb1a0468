"""Translate sentences, a line each: `python -m nmt.translate`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.translate.request import Translating
    from nmt.translate.work import translate

    return translate(read(Translating, config, overrides))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "translate", _work)

if __name__ == "__main__":
    sys.exit(run())
