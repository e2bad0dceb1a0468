"""Part of exported programs: the folder of an exported model, and input and output of lines as in `nmt.translate`."""

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

MARK = b"\xef\xbb\xbf"  # the byte-order mark that some editors write before UTF-8
SPACE, LITERAL = "\u2581", "\ufdd0"  # SentencePiece's space symbol, and its replacement in a text that contains it


class ExportedFolder:
    """The settings (manifest.json) and the tokenizer of an export folder."""

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
        # Canonically equivalent texts get the same pieces.
        plain = unicodedata.normalize("NFC", re.sub(unseen, "", line)) if unseen else line
        pieces: list[Any] = self.source.encode(protected(plain), out_type=kind)
        return pieces

    def longest(self, pieces: int) -> int:
        """Maximum pieces in the translation of a text with `pieces` pieces; the end of sentence counts as a piece."""
        return int(math.ceil(self.settings["length_ratio"] * pieces) + self.settings["extra_length"])

    def rank(self, log_prob: float, pieces: int) -> float:
        """The rank of a hypothesis: log-probability / ((5 + pieces) / 6) ** length penalty; `pieces` counts the end."""
        return float(log_prob / ((5 + pieces) / 6) ** self.settings["length_penalty"])


def arriving(stream: Any) -> Iterator[list[str]]:
    """Yield lists of the lines that have arrived: UTF-8, ended by LF or CR LF, without a byte-order mark."""
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
    """The line with SentencePiece's space symbol replaced, since SentencePiece would read it as a space."""
    return line.replace(SPACE, LITERAL)


def spelled(pieces: list[str]) -> str:
    """The text of target pieces, in one line."""
    parts = [bytes([int(piece[3:5], 16)]) if re.fullmatch("<0x..>", piece) else piece.encode() for piece in pieces]
    text = b"".join(parts).decode("utf-8", "replace").replace(SPACE, " ").replace(LITERAL, SPACE)
    return text.replace("\n", " ").removeprefix(" ")


def run(translate: Callable[[list[str]], list[str]]) -> None:
    """Translate the file INPUT to OUTPUT, the arguments of the program; "-" or none means standard input or output."""
    names = [*sys.argv[1:], "-", "-"]
    try:
        if "-" not in names[:2] and os.path.exists(names[1]) and os.path.samefile(*names[:2]):
            sys.exit("translate.py: input and output are the same file.")
        source: Any = sys.stdin.buffer if names[0] == "-" else open(names[0], "rb")  # noqa: SIM115
        target: Any = sys.stdout.buffer if names[1] == "-" else open(names[1], "wb")  # noqa: SIM115
        for lines in arriving(source):
            target.write("".join(f"{text}\n" for text in translate(lines)).encode())
            target.flush()
    except BrokenPipeError:  # the reader, such as `| head`, has ended: discard the last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        sys.exit(f"translate.py: {error.filename or 'standard output'}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit(130)
