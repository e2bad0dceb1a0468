"""Translate sentences, a line each: `python -m nmt.translate`."""

import sys
from typing import Any

from nmt.config.program import command


@command("translate")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read
    from nmt.translate.request import Translating
    from nmt.translate.work import translate

    return translate(read(Translating, config, overrides))


if __name__ == "__main__":
    sys.exit(run())
