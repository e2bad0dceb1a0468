"""Train a translator, or resume one; with -m several, each in a process of its own: `python -m nmt.train`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("train"))
