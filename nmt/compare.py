"""The verb `python -m nmt.compare`: puts runs side by side, and says which differences are more than noise."""

import sys
from typing import TYPE_CHECKING

from nmt.command.running import main as run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Does what the configuration says."""
    from nmt.pipeline.comparing import compare

    del overrides
    return compare(config)


def main() -> int:
    """The command line."""
    return run("compare", action)


if __name__ == "__main__":
    sys.exit(main())
