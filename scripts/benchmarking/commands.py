"""Shared parts of the command lines of the benchmark scripts."""

import argparse
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from nmt.system.errors import UserError, nearest


class Parser(argparse.ArgumentParser):
    """A parser that raises UserError for an invalid command line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message[:1].upper()}{message[1:]}. {self.prog} --help says what there is.")


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that all benchmark scripts have."""
    say = parser.add_argument
    say("--quick", action="store_true", help="tiny sizes, only to see that all of it works")
    say("--data", metavar="DIR", help="folder with Multi30k ($NMT_DATA/multi30k; else the built-in corpus)")
    say("--tokenizer", metavar="FILE", help="SentencePiece model for both languages (else one is trained)")
    say("--threads", metavar="N", type=count, help="CPU threads, everybody's (torch's choice)")
    say("--joey-python", metavar="PYTHON", help="of Joey NMT's virtual environment ($NMT_JOEY_PYTHON)")
    say("--onmt-python", metavar="PYTHON", help="of OpenNMT-py's virtual environment ($NMT_ONMT_PYTHON)")
    say("--eole-python", metavar="PYTHON", help="of eole's virtual environment ($NMT_EOLE_PYTHON)")
    say("--marian-python", metavar="PYTHON", help="of Marian's virtual environment ($NMT_MARIAN_PYTHON)")


def count(word: str) -> int:
    """Parse a whole number of at least 1 (ArgumentTypeError for anything else)."""
    with contextlib.suppress(ValueError):
        if (number := int(word)) >= 1:
            return number
    raise argparse.ArgumentTypeError(f"{word} is not a whole number from 1 on")


def select(option: str, words: str | None, known: Sequence[str]) -> list[str]:
    """The comma-separated words of an option; without the option, all `known` words (UserError for an unknown word)."""
    names = words.split(",") if words else list(known)
    for name in names:
        if name not in known:
            raise UserError(f"{option} {name} does not exist; choose of {', '.join(known)}.{nearest(name, known)}")
    return names


def check_places(read: Mapping[str, str | Path | None], written: Mapping[str, Path | None]) -> None:
    """Check before any work that files and folders exist (`read`), and that folders can be written (`written`).

    Raises:
        UserError: a path is missing, or a folder cannot be created or written; the message names the option.
    """
    for option, path in read.items():
        if path is not None and not os.path.exists(path):
            raise UserError(f"{option} {path} is not there.")
    for option, folder in written.items():
        if folder is not None and not _writable(folder):
            raise UserError(f"{option}: {folder} cannot be written. Give another place.")


def _writable(folder: Path) -> bool:
    """Create the folder; return whether files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
