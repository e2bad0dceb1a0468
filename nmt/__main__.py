"""`python -m nmt`: lists the verbs; the work begins in `nmt/train.py` and its neighbours."""

from nmt import __version__
from nmt.command.keys import read_head
from nmt.configuration import config_folder

if __name__ == "__main__":
    print(f"nmt {__version__}: train a translator, use it, score it, and see what its attention looked at\n")
    for verb in ("train", "translate", "evaluate", "align", "compare"):
        print(f"  {read_head(config_folder() / f'{verb}.yaml').examples[0]}")
    print("\nEach answers --help. The README begins with one command that does all three.")
