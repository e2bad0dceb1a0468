"""Tokenised splits in the cache folder, shared by all runs with the same text and tokenizer; loads pyarrow."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from nmt.data.arrow import Batches, cached_table, temporary_table
from nmt.data.batch import Integers
from nmt.data.dataset import Split
from nmt.data.pairs import REASONS, Block, EncodedPairs, Ragged, encode_blocks
from nmt.data.stored import gathered
from nmt.text.tokenizer import Tokenizer

#: Part of every key: increase it if the stored content or the tokenisation changes.
FORMAT = 4

_SCHEMA = pa.schema([("source", pa.list_(pa.int32())), ("target", pa.list_(pa.int32())), ("row", pa.int64())])


def prepare(
    split: Split,
    tokenizer: Tokenizer,
    *,
    max_source_length: int,
    max_target_length: int,
    cache: Path,
    workers: int = 1,
) -> EncodedPairs:
    """The tokenised split, from the folder `cache` if it is there (UserError if the folder cannot be written).

    Lengths are in ids, without specials; longer pairs are dropped and counted. Folders in the cache are named by a hash
    of their content, so that parallel runs share them and nothing outdated is read.
    """
    about = f"{FORMAT} {tokenizer.fingerprint} {max_source_length} {max_target_length} {split.fingerprint()}"
    folder = cache / hashlib.sha256(about.encode()).hexdigest()[:40]
    batches = _batches(lambda: encode_blocks(split, tokenizer, max_source_length, max_target_length, workers))
    return _pairs(*cached_table(folder, _SCHEMA, batches), cache)


def spilled(blocks: Iterator[Block], cache: Path) -> EncodedPairs:
    """Join blocks in a temporary file of the cache folder (UserError if the file cannot be written)."""
    return _pairs(*temporary_table(cache, _SCHEMA, _batches(lambda: blocks)), cache)


def _batches(blocks: Any) -> Batches:
    """A function that yields one record batch per block, and adds the numbers of dropped pairs to the facts."""

    def batches(facts: dict[str, Any]) -> Iterator[Any]:
        dropped = Counter(dict.fromkeys(REASONS, 0))
        for block in blocks():
            dropped.update(block.dropped)
            if len(block.rows):
                columns = [
                    _list_column(block.source, block.source_lengths),
                    _list_column(block.target, block.target_lengths),
                    pa.array(block.rows, type=pa.int64()),
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
        facts["dropped"] = dropped

    return batches


def _list_column(values: npt.NDArray[np.int32], lengths: Integers) -> Any:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, type=pa.int32()))


def _pairs(table: Any, facts: dict[str, Any], cache: Path) -> EncodedPairs:
    """The pairs of a table; the ids stay in its file."""

    def ragged(chunks: Sequence[Any]) -> Ragged:
        arrays = ((chunk.values, chunk.offsets) for chunk in chunks)
        return Ragged([tuple(side.to_numpy(zero_copy_only=True) for side in pair) for pair in arrays], cache)

    source, target = (ragged(table.column(side).chunks) for side in ("source", "target"))
    rows = (chunk.to_numpy() for chunk in table.column("row").chunks)
    return EncodedPairs(source, target, gathered(rows, len(table), cache), facts["dropped"])
