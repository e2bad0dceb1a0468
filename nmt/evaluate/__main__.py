"""Score a run and draw its attention: `python -m nmt.evaluate`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.evaluate.request import Evaluating
    from nmt.evaluate.work import evaluate

    return evaluate(read(Evaluating, config, overrides))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "evaluate", _work)

if __name__ == "__main__":
    sys.exit(run())
