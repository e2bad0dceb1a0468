"""The verb `python -m nmt.train`: trains a translator, or goes on with one; with -m several, a process each."""

import sys
from typing import TYPE_CHECKING

from nmt.command.running import main as run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Runs the training that the configuration describes."""
    from nmt.pipeline.training import train

    return train(config, overrides)


def sweep(words: list[str]) -> int:
    """Runs a training for each combination of values on the command line."""
    from nmt.pipeline.sweeping import sweep

    return sweep(words)


def main() -> int:
    """The command line."""
    return run("train", action, sweep=sweep)


if __name__ == "__main__":
    sys.exit(main())
