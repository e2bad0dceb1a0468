"""Contrastive test of context: `python -m nmt.contrast`."""

import sys
from typing import Any

from nmt.config.program import command


@command("contrast")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.contrast.work import Contrasting, contrast

    return contrast(read(Contrasting, config))


if __name__ == "__main__":
    sys.exit(run())
