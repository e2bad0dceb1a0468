"""Tokenises a split once: afterwards it is a memory-mapped Arrow file, shared by all runs that need the same.

Between a data set and `nmt.data.pairs`.  The only file besides `hub.py` that loads the `datasets` library.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
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
from nmt.data.pairs import BLOCK, EMPTY, LONG_SOURCE, LONG_TARGET, Block, EncodedPairs, Ragged, encode_blocks
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer

#: Part of every key: raise it when what is stored, or how text is cut, changes.
FORMAT = 1

_SCHEMA = pa.schema([("source", pa.list_(pa.int32())), ("target", pa.list_(pa.int32())), ("row", pa.int64())])
_PAIRS, _ABOUT = "pairs.arrow", "about.json"


class _DamagedError(Exception):
    """A folder of the cache does not hold what its description says."""


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
        tokenizer: what cuts them.
        max_source_length: the most ids a source sentence, without specials; longer pairs are dropped and
            counted.
        max_target_length: the same for the target.
        cache: folder of the cache.  A folder in there is named by the content it was made from, so that runs
            which work side by side share it and nothing stale is ever read.
        workers: threads that tokenise.

    Raises:
        UserError: the cache folder cannot be written.
    """
    folder = cache / key(split, tokenizer, max_source_length, max_target_length)
    with contextlib.suppress(FileNotFoundError, _DamagedError):
        return _read(folder)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name[:12]}.", dir=cache))
    except OSError as error:
        raise _unwritable(cache, error) from error
    try:
        _write(temporary, encode_blocks(split, tokenizer, max_source_length, max_target_length, workers))
        _publish(temporary, folder)
    except OSError as error:
        raise _unwritable(cache, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _read(folder)


def key(split: Split, tokenizer: Tokenizer, max_source_length: int, max_target_length: int) -> str:
    """Names the content that a cached split is made from: 40 hexadecimal digits."""
    limits = f"{max_source_length} {max_target_length}"
    digest = hashlib.sha256(f"{FORMAT} {tokenizer.fingerprint} {limits} {len(split.source)}\n".encode())
    for side in (split.source, split.target):
        for first in range(0, len(side), BLOCK):
            block = side[first : first + BLOCK]
            # The lengths tell apart what the joined text cannot.
            digest.update(np.fromiter(map(len, block), dtype=np.int64).tobytes())
            digest.update("\n".join(block).encode())
    return digest.hexdigest()[:40]


def _write(folder: Path, blocks: Iterator[Block]) -> None:
    """Writes the blocks and a description by which damage is noticed."""
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
                writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))
        writer.finalize()
    about = {"dropped": dropped, "bytes": path.stat().st_size, "checksum": _checksum(path)}
    (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
    # mkdtemp makes folders private; the cache is as readable as any other folder of the user's.
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)


def _checksum(path: Path) -> int:
    """CRC-32 of a file: enough against torn and rotten files, at a gigabyte a second."""
    checksum = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            checksum = zlib.crc32(data, checksum)
    return checksum


def _list_column(values: npt.NDArray[np.int32], lengths: Integers) -> Any:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, type=pa.int32()))


def _publish(temporary: Path, folder: Path) -> None:
    """Gives a finished folder its name; one that another run has put there in the meantime stays, if it is sound."""
    for _ in range(10):
        try:
            temporary.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        try:
            _read(folder)
            return
        except (_DamagedError, FileNotFoundError):
            with contextlib.suppress(FileNotFoundError):
                aside = Path(tempfile.mkdtemp(prefix=".damaged.", dir=folder.parent)) / folder.name
                folder.rename(aside)
            shutil.rmtree(aside.parent, ignore_errors=True)
    raise UserError(f"The cache folder {folder} is damaged and cannot be replaced; remove it.")


def _read(folder: Path) -> EncodedPairs:
    """Maps the folder's file into memory.

    Raises:
        FileNotFoundError: there is no such folder.
        _DamagedError: it does not hold what it should.
    """
    if not folder.exists():
        raise FileNotFoundError(folder)
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        path = folder / _PAIRS
        if path.stat().st_size != about["bytes"] or _checksum(path) != about["checksum"]:
            raise _DamagedError(folder)
        table = datasets.Dataset.from_file(str(path)).data
        source, target = (_ragged(table.column(side).chunks) for side in ("source", "target"))
        return EncodedPairs(source, target, table.column("row").to_numpy(), about["dropped"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise _DamagedError(folder) from error


def _ragged(chunks: Sequence[Any]) -> Ragged:
    """The lists of an Arrow column; the ids stay in the file."""
    return Ragged(
        [(chunk.values.to_numpy(zero_copy_only=True), chunk.offsets.to_numpy(zero_copy_only=True)) for chunk in chunks]
    )


def _unwritable(cache: Path, error: OSError) -> UserError:
    return UserError(
        f"Cannot write the cache folder {cache}: {error.strerror or error}. Free some space, or choose another "
        "with cache=FOLDER."
    )
