"""Serve a page and a REST interface: `python -m nmt.serve`."""

import sys
from typing import TYPE_CHECKING

from nmt.verbs import run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def work(config: "DictConfig", overrides: list[str]) -> int:
    """Serve as a configuration says; the exit status."""
    from nmt.build.requests import read
    from nmt.serve.server import Serving, serve

    return serve(read(Serving, config, overrides))


if __name__ == "__main__":
    sys.exit(run("serve"))
