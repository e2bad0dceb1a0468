"""Serve a page and a REST interface: `python -m nmt.serve`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("serve"))
