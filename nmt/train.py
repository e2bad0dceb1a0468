"""The verb `python -m nmt.train`: trains a translator, or goes on with one."""

import sys
from typing import TYPE_CHECKING

from nmt import cli

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Runs the training that the configuration describes."""
    from nmt.pipeline.training import train

    return train(config, overrides)


def main() -> int:
    """The command line."""
    return cli.main("train", action)


if __name__ == "__main__":
    sys.exit(main())
