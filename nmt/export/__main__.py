"""The command line of `nmt.export`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("export"))
