"""Link words of sentences and their translations, and score links: `python -m nmt.align`."""

import sys

from nmt.verbs import run

if __name__ == "__main__":
    sys.exit(run("align"))
