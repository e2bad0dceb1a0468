"""The text of pieces: byte pieces as characters, and the places of unknown pieces."""

import codecs
import contextlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nmt.text.spans import Span


def around_unknown(
    unknown: Sequence[int], text: str, begins: Sequence[int], ends: Sequence[int], normal: str
) -> tuple[list[int], ...]:
    """Move the places `begins` and `ends` of pieces in their `text` to places in the normalised sentence `normal`.

    Pieces with the indices `unknown` get all characters between the known pieces.
    """
    nexts = dict(pairwise([*unknown, None]))
    moved: list[Span] = []
    offset = 0
    for at, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if at not in nexts:
            moved.append((begin + offset, end + offset))
            continue
        following = nexts[at]
        known = text[end : len(text) if following is None else begins[following]]
        stop = normal.find(known, begin + offset + 1) if known else -1
        if stop < 0:
            stop = len(normal) if following is None else begin + offset + 1
        moved.append((begin + offset, stop))
        offset = stop - end
    return tuple([min(span[side], len(normal)) for span in moved] for side in (0, 1))


def characters(
    values: npt.NDArray[np.int64], run_starts: npt.NDArray[np.bool_]
) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Decode runs of bytes to characters (U+FFFD for invalid UTF-8); also returns which bytes begin a character."""
    data = values.astype(np.uint8).tobytes()
    first = (values & 0xC0) != 0x80
    if first[run_starts].all():
        with contextlib.suppress(UnicodeDecodeError):
            return list(data.decode()), first
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    owners = []
    for byte, starts in zip(data, run_starts.tolist(), strict=True):
        text += decoder.decode(b"", final=starts) + decoder.decode(bytes([byte]))
        pending = bool(decoder.getstate()[0])
        owners.append(len(text) if pending else len(text) - 1)
    text += decoder.decode(b"", final=True)
    # Each part is usually one character; half a surrogate gives two.
    ends = [*sorted(set(owners))[1:], len(text)]
    return [text[begin:end] for begin, end in pairwise([0, *ends])], np.diff(owners, prepend=-1) > 0
