"""Convert a run for CTranslate2 or ONNX: `python -m nmt.export`."""

import sys
from typing import Any

from nmt.config.program import command


@command("export")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.export.conversion import Exporting, export

    return export(read(Exporting, config))


if __name__ == "__main__":
    sys.exit(run())
