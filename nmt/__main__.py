"""`python -m nmt`: lists the commands, each of which is a package."""

import importlib.util
import sys

from nmt import __version__
from nmt.config.configuration import config_folder
from nmt.config.keys import read_head
from nmt.config.program import guarded


def _overview() -> int:
    print(f"nmt {__version__}: train a translator, use it, score it, and see what its attention looked at\n")
    for verb in ("train", "translate", "evaluate", "align", "contrast", "compare", "serve", "export", "check"):
        if importlib.util.find_spec(f"nmt.{verb}") is not None:  # extras can be deleted
            print(f"  {read_head(config_folder() / f'{verb}.yaml').examples[0]}")
    print("\nEach command answers --help. The first needs no data: it trains on the built-in corpus.")
    return 0


if __name__ == "__main__":
    sys.exit(guarded("nmt", _overview))
