"""Train a translator, or resume one; with -m several, each in a process of its own: `python -m nmt.train`."""

import sys
from typing import Any

from nmt.config.program import command


def _sweep(words: list[str]) -> int:
    from nmt.train.sweep import sweep

    return sweep(words)


def _choices_of_start(overrides: list[str]) -> list[str]:
    if not any(word.startswith("start=") for word in overrides):
        return []
    from nmt.train.ancestor import choices_of_start

    return choices_of_start(overrides)


@command("train", sweep=_sweep, first=_choices_of_start)
def run(config: Any, overrides: list[str]) -> int:
    from nmt.train.session import train

    return train(config, overrides)


if __name__ == "__main__":
    sys.exit(run())
