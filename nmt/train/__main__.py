"""Train a translator, or resume one; with -m several, each in a process of its own: `python -m nmt.train`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.train.session import train

    return train(config, overrides)


def _sweep(words: list[str]) -> int:
    from nmt.train.sweep import sweep

    return sweep(words)


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "train", _work, sweep=_sweep)

if __name__ == "__main__":
    sys.exit(run())
