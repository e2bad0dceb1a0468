"""The verb `python -m nmt.evaluate`: scores a run, and draws what it looked at."""

import sys
from typing import TYPE_CHECKING

from nmt.command.running import main as run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Does what the configuration says."""
    from nmt.pipeline.evaluating import evaluate

    return evaluate(config, overrides)


def main() -> int:
    """The command line."""
    return run("evaluate", action)


if __name__ == "__main__":
    sys.exit(main())
