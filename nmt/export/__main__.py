"""Convert a run for CTranslate2 or ONNX: `python -m nmt.export`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.export.conversion import Exporting, export

    return export(read(Exporting, config))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "export", _work)

if __name__ == "__main__":
    sys.exit(run())
