"""The verb `python -m nmt.translate`: sentences in, translations out, a line each."""

import sys
from typing import TYPE_CHECKING

from nmt.command.running import main as run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Does what the configuration says."""
    from nmt.pipeline.translating import translate

    return translate(config, overrides)


def main() -> int:
    """The command line."""
    return run("translate", action)


if __name__ == "__main__":
    sys.exit(main())
