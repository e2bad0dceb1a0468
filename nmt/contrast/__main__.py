"""Contrastive test of context: `python -m nmt.contrast`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("contrast"))
