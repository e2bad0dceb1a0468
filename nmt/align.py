"""The verb `python -m nmt.align`: word links between sentences and translations, and their error rate."""

import sys
from typing import TYPE_CHECKING

from nmt.command.running import main as run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def action(config: "DictConfig", overrides: list[str]) -> int:
    """Does what the configuration says."""
    del overrides
    if config.links is not None:
        from nmt.pipeline.linking import score_links

        return score_links(config)
    from nmt.pipeline.aligning import align

    return align(config)


def main() -> int:
    """The command line."""
    return run("align", action)


if __name__ == "__main__":
    sys.exit(main())
