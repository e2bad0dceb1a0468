"""Contrastive test of context: `python -m nmt.contrast`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.contrast.work import Contrasting, contrast

    return contrast(read(Contrasting, config))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "contrast", _work)

if __name__ == "__main__":
    sys.exit(run())
