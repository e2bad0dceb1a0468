"""The folder of an exported model, and lines in and out as those of `nmt.translate`: a part of exported programs."""

import json
import math
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece

MARK = b"\xef\xbb\xbf"  # that some editors write before UTF-8
SPACE, LITERAL = "\u2581", "\ufdd0"  # how SentencePiece writes a space, and what this character becomes in a text


class ExportedFolder:
    """The settings in manifest.json and the tokenizer of a folder."""

    def __init__(self, folder: Path) -> None:
        self.settings: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / self.settings[side]))
            for side in ("source", "target")
        )

    def encode(self, line: str, kind: type = str) -> list[Any] | None:
        """The pieces of a line, or with `kind` int their ids; None for a line that shows nothing."""
        unseen = self.settings["unseen"]
        if not re.search(self.settings["shown"], line):
            return None
        # Equivalent text is equal text.
        plain = unicodedata.normalize("NFC", re.sub(unseen, "", line)) if unseen else line
        pieces: list[Any] = self.source.encode(protected(plain), out_type=kind)
        return pieces

    def longest(self, pieces: int) -> int:
        """The largest number of pieces in the translation of `pieces` pieces; the end counts as a piece."""
        return int(math.ceil(self.settings["length_ratio"] * pieces) + self.settings["extra_length"])

    def rank(self, log_prob: float, pieces: int) -> float:
        """What hypotheses are ranked by: log-probability / ((5 + pieces) / 6) ** length penalty; the end is a piece."""
        return float(log_prob / ((5 + pieces) / 6) ** self.settings["length_penalty"])


def arriving(stream: Any) -> Iterator[list[str]]:
    """The lines that have arrived: UTF-8, ended by LF or CR LF; a byte-order mark is dropped."""
    rest, number, block = b"", 0, b" "
    while block:
        block = stream.read1(1 << 16)
        *ended, rest = (rest + block).split(b"\n")
        lines = [line.removesuffix(b"\r") for line in ended]
        if not block and rest and (number or rest != MARK):
            lines = [rest]
        texts = []
        for line in lines:
            number += 1
            try:
                texts.append((line.removeprefix(MARK) if number == 1 else line).decode("utf-8"))
            except UnicodeDecodeError:
                yield from [texts] * bool(texts)
                sys.exit(f"translate.py: line {number}: not valid UTF-8. Save the text as UTF-8.")
        if texts:
            yield texts


def protected(line: str) -> str:
    """A line for SentencePiece."""
    return line.replace(SPACE, LITERAL)


def spelled(pieces: list[str]) -> str:
    """The text of pieces, in one line."""
    parts = [bytes([int(piece[3:5], 16)]) if re.fullmatch("<0x..>", piece) else piece.encode() for piece in pieces]
    text = b"".join(parts).decode("utf-8", "replace").replace(SPACE, " ").replace(LITERAL, SPACE)
    return text.replace("\n", " ").removeprefix(" ")


def run(translate: Callable[[list[str]], list[str]]) -> None:
    """Translate INPUT to OUTPUT, the two arguments; without them, standard input to standard output."""
    names = [*sys.argv[1:], "-", "-"]
    try:
        if "-" not in names[:2] and os.path.exists(names[1]) and os.path.samefile(*names[:2]):
            sys.exit("translate.py: input and output are the same file.")
        source: Any = sys.stdin.buffer if names[0] == "-" else open(names[0], "rb")  # noqa: SIM115
        target: Any = sys.stdout.buffer if names[1] == "-" else open(names[1], "wb")  # noqa: SIM115
        for lines in arriving(source):
            target.write("".join(f"{text}\n" for text in translate(lines)).encode())
            target.flush()
    except BrokenPipeError:  # as `| head` does; the last flush goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        sys.exit(f"translate.py: {error.filename or 'standard output'}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit(130)
