"""Check the files of a run for damage: `python -m nmt.check`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("check"))
