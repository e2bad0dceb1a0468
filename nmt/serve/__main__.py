"""Serve a page and a REST interface: `python -m nmt.serve`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.serve.server import Serving, serve

    return serve(read(Serving, config, overrides))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "serve", _work)

if __name__ == "__main__":
    sys.exit(run())
