"""Serve a page and a REST interface: `python -m nmt.serve`."""

import sys
from typing import Any

from nmt.config.program import command


@command("serve")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.serve.server import Serving, serve

    return serve(read(Serving, config, overrides))


if __name__ == "__main__":
    sys.exit(run())
