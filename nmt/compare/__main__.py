"""Compare runs, and test which differences are significant: `python -m nmt.compare`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("compare"))
