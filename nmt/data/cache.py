"""A cache of tokenised splits: memory-mapped Arrow files, shared by all runs with the same text and tokenizer.

The only file besides `hub.py` that loads the `datasets` library.
"""

import contextlib
import errno
import hashlib
import json
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from datasets.arrow_writer import ArrowWriter  # type: ignore[import-untyped]

from nmt.data.batch import Integers
from nmt.data.corpus import Split
from nmt.data.large import gathered, remembered
from nmt.data.pairs import BLOCK, EMPTY, LONG_SOURCE, LONG_TARGET, Block, EncodedPairs, Ragged, encode_blocks
from nmt.errors import UserError
from nmt.files import appearing, unwritable
from nmt.text.tokenizer import Tokenizer

#: Part of every key: increase it if the stored content or the tokenisation changes.
FORMAT = 2

_SCHEMA = pa.schema([("source", pa.list_(pa.int32())), ("target", pa.list_(pa.int32())), ("row", pa.int64())])
_PAIRS, _ABOUT = "pairs.arrow", "about.json"
_DAY = 86_400.0  # in seconds


class _DamagedError(Exception):
    """A folder of the cache does not match its description."""


def prepare(
    split: Split,
    tokenizer: Tokenizer,
    *,
    max_source_length: int,
    max_target_length: int,
    cache: Path,
    workers: int = 1,
) -> EncodedPairs:
    """The tokenised split, from the cache if it is there.

    Args:
        split: the sentences.
        tokenizer: of both sides.
        max_source_length: maximum number of ids in a source sentence, without specials; longer pairs are dropped and
            counted.
        max_target_length: the same for the target.
        cache: folder of the cache. Its folders are named after their content, so that parallel runs share them and
            nothing outdated is read.
        workers: number of threads for tokenising.

    Raises:
        UserError: the cache folder cannot be written.
    """
    limits = f"{max_source_length} {max_target_length}"
    sides = (split.source, split.target)
    folder = cache / remembered(
        sides,
        f"key {FORMAT} {tokenizer.fingerprint} {limits}",
        lambda: key(split, tokenizer, max_source_length, max_target_length),
    )
    for _ in range(10):  # other runs may write it, or damage it, at the same time
        try:
            with contextlib.suppress(FileNotFoundError):
                try:
                    return _read(folder)
                except _DamagedError:
                    _remove(folder)
            with appearing(folder) as temporary:
                _write(temporary, encode_blocks(split, tokenizer, max_source_length, max_target_length, workers))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) or not folder.exists():
                raise unwritable(cache, error, "cache=FOLDER") from error
    raise UserError(f"The cache folder {folder} is damaged and cannot be replaced. Delete it.")


def key(split: Split, tokenizer: Tokenizer, max_source_length: int, max_target_length: int) -> str:
    """The name of a cached split, which depends on everything it is made from: 40 hexadecimal digits."""
    limits = f"{max_source_length} {max_target_length}"
    digest = hashlib.sha256(f"{FORMAT} {tokenizer.fingerprint} {limits} {len(split.source)}\n".encode())
    for side in (split.source, split.target):
        for first in range(0, len(side), BLOCK):
            block = side[first : first + BLOCK]
            # The lengths distinguish texts that are equal when joined.
            digest.update(np.fromiter(map(len, block), dtype=np.int64).tobytes())
            digest.update("\n".join(block).encode())
    return digest.hexdigest()[:40]


def spilled(blocks: Iterator[Block], cache: Path) -> EncodedPairs:
    """Blocks as one, in a file of the cache folder that nobody else sees and that ends with them.

    Raises:
        UserError: the cache folder cannot be written.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        for left in cache.glob(".epoch.*"):  # by a killed process, or by Windows, which removes no mapped file
            if left.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".epoch.", dir=cache, ignore_cleanup_errors=True) as folder:
            _write(Path(folder), blocks)
            return _read(Path(folder))
    except OSError as error:
        raise unwritable(cache, error, "cache=FOLDER") from error


def _write(folder: Path, blocks: Iterator[Block]) -> None:
    """Write the blocks, and a description that reveals damage."""
    dropped = dict.fromkeys((EMPTY, LONG_SOURCE, LONG_TARGET), 0)
    path = folder / _PAIRS
    with ArrowWriter(path=str(path), schema=_SCHEMA) as writer:
        for block in blocks:
            for reason, count in block.dropped.items():
                dropped[reason] += count
            if len(block.rows):
                columns = [
                    _list_column(block.source, block.source_lengths),
                    _list_column(block.target, block.target_lengths),
                    pa.array(block.rows, type=pa.int64()),
                ]
                # In one batch: each takes some kB of memory, and the library would make one of every 1,000 pairs.
                writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), writer_batch_size=len(block.rows))
        writer.finalize()
    about = {"dropped": dropped, "bytes": path.stat().st_size, "checksum": _checksum(path)}
    (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")


def _checksum(path: Path) -> int:
    """CRC-32 of a file: detects damage at a gigabyte per second."""
    checksum = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            checksum = zlib.crc32(data, checksum)
    return checksum


def _list_column(values: npt.NDArray[np.int32], lengths: Integers) -> Any:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, type=pa.int32()))


def _remove(folder: Path) -> None:
    """Remove a damaged folder, or a file in its place, in one step; a mapped file stays readable."""
    aside = Path(tempfile.mkdtemp(prefix=".damaged.", dir=folder.parent))
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside / folder.name)
    shutil.rmtree(aside, ignore_errors=True)


def _read(folder: Path) -> EncodedPairs:
    """Map the folder's file into memory.

    Raises:
        FileNotFoundError: the folder does not exist.
        _DamagedError: it does not match its description.
    """
    if not folder.exists():
        raise FileNotFoundError(folder)
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        path = folder / _PAIRS
        if path.stat().st_size != about["bytes"] or _checksum(path) != about["checksum"]:
            raise _DamagedError(folder)
        table = datasets.Dataset.from_file(str(path)).data
        source, target = (_ragged(table.column(side).chunks, folder.parent) for side in ("source", "target"))
        rows = (chunk.to_numpy() for chunk in table.column("row").chunks)
        return EncodedPairs(source, target, gathered(rows, len(table), folder.parent), about["dropped"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise _DamagedError(folder) from error


def _ragged(chunks: Sequence[Any], folder: Path) -> Ragged:
    """The lists of an Arrow column; the ids stay in the file."""
    return Ragged(
        [(chunk.values.to_numpy(zero_copy_only=True), chunk.offsets.to_numpy(zero_copy_only=True)) for chunk in chunks],
        folder,
    )
