"""Translate sentences, a line each: `python -m nmt.translate`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("translate"))
