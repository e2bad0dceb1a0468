"""`python -m nmt`: says which verbs there are; the work begins in `nmt/train.py` and its neighbours."""

from nmt import __version__
from nmt.command.keys import EXAMPLES

if __name__ == "__main__":
    print(f"nmt {__version__}: train a translator, use it, score it, and see what its attention looked at\n")
    for examples in EXAMPLES.values():
        print(f"  {examples[0]}")
    print("\nEach answers --help. The README begins with one command that does all three.")
