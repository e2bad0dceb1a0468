"""Score a run and draw its attention: `python -m nmt.evaluate`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("evaluate"))
