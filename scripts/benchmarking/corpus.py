"""The corpus of all cases and peers, prepared once in its own folder.

The folder has `tokenizer.model`; `pairs.npz`, the training pairs as token ids; `train`, `valid`, `few` and `test` as
text, one file per side; `pieces.txt` and `counted.txt`, the vocabulary in the peers' formats.
"""

import os
from pathlib import Path

import numpy as np

from benchmarking.settings import Json, Scale
from nmt.data.builtin import BuiltIn
from nmt.data.dataset import DataSource, Split
from nmt.data.pairs import EncodedPairs, Ragged, encode_blocks, held
from nmt.data.sources import Multi30k
from nmt.system.errors import UserError
from nmt.system.files import write_text
from nmt.text.tokenizer import Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer

SOURCE, TARGET = "de", "en"


def prepare(folder: Path, data: str | None, tokenizer: str | None, scale: Scale) -> Json:
    """Write the corpus into `folder` and return facts about it.

    Args:
        folder: the folder to fill.
        data: a folder with Multi30k; None for $NMT_DATA/multi30k if it exists, else the built-in corpus.
        tokenizer: a SentencePiece model for both sides; None for the model next to $NMT_DATA if it exists, else a new
            tokenizer is trained.
        scale: sizes of the built-in corpus, maximum length of pairs, number of pieces.

    Raises:
        UserError: a file is missing, or the corpus has no test set.
    """
    root = os.environ.get("NMT_DATA")
    notes = []
    if data is None and root and Path(root, "multi30k").is_dir():
        data = str(Path(root, "multi30k"))
    source: DataSource
    if data is not None:
        source = Multi30k(data, SOURCE, TARGET)
        source.check()
        notes.append(f"Corpus: Multi30k {SOURCE}-{TARGET} in {data}.")
        beside = Path(root, "..", "peers", "joint8k.model") if root else None
        if tokenizer is None and beside is not None and beside.is_file():
            tokenizer = str(beside)
    else:
        pairs, valid, test = scale.built_in
        source = BuiltIn(train_pairs=pairs, valid_pairs=valid, test_pairs=test)
        notes += ["Corpus: the built-in one (Multi30k is not there: --data DIR, or NMT_DATA).", *source.notes()]
    if not source.tests():
        raise UserError(f"{data} has no test set to translate. Put test_2016_flickr.{SOURCE} and .{TARGET} there.")
    train, valid_split, test_split = (source.read(name) for name in ("train", "valid", source.tests()[0]))
    pieces, remarks = TokenizerTrainer(vocabulary_size=scale.sizes.pieces, joint=True, model=tokenizer).train(
        train.source, train.target
    )
    encoded = held(encode_blocks(train, pieces, max_source_length=scale.longest, max_target_length=scale.longest))
    if len(encoded) == 0:
        raise UserError("The training set is empty.")
    _write(folder, pieces, encoded)
    for name, split in (("train", train), ("valid", valid_split), ("test", test_split)):
        _write_text(folder, name, split)
    _write_text(folder, "few", Split("few", valid_split.source[:2], valid_split.target[:2]))
    return {
        "name": source.name,
        "languages": [SOURCE, TARGET],
        "test": test_split.name,
        "pairs": len(encoded),
        "pieces": pieces.target.size,
        "source_tokens": float(np.mean(encoded.source_lengths + 1)),
        "target_tokens": float(np.mean(encoded.target_lengths + 1)),
        "notes": [*notes, *remarks],
    }


def _write(folder: Path, tokenizer: Tokenizer, pairs: EncodedPairs) -> None:
    tokenizer.save(folder)
    count = range(len(pairs))
    np.savez(
        folder / "pairs.npz",
        source=np.concatenate([np.asarray(pairs.source(index), dtype=np.int32) for index in count]),
        source_lengths=pairs.source_lengths,
        target=np.concatenate([np.asarray(pairs.target(index), dtype=np.int32) for index in count]),
        target_lengths=pairs.target_lengths,
    )
    spelled = tokenizer.target.pieces(range(tokenizer.target.size))
    write_text(folder / "pieces.txt", "".join(f"{piece}\n" for piece in spelled))
    # Without the four special pieces, and without pieces that contain white space, at which peers split lines.
    counted = [piece for piece in spelled[4:] if piece.split() == [piece]]
    write_text(folder / "counted.txt", "".join(f"{piece}\t1\n" for piece in counted))


def _write_text(folder: Path, name: str, split: Split) -> None:
    """Write two parallel files; characters that a reader could take for the end of a line become spaces."""
    pairs = [
        (" ".join(source.splitlines()), " ".join(target.splitlines()))
        for source, target in zip(split.source, split.target, strict=True)
        if source.strip() and target.strip()
    ]
    for side, language in enumerate((SOURCE, TARGET)):
        write_text(folder / f"{name}.{language}", "".join(f"{pair[side]}\n" for pair in pairs))


def read_pairs(folder: Path) -> EncodedPairs:
    """The training pairs that `prepare` wrote."""
    with np.load(folder / "pairs.npz") as arrays:
        sides = [
            Ragged([(arrays[side], np.concatenate([[0], np.cumsum(arrays[f"{side}_lengths"])]))])
            for side in ("source", "target")
        ]
    return EncodedPairs(sides[0], sides[1], np.arange(len(sides[0])), {})


def read_text(folder: Path, split: str, language: str) -> list[str]:
    """The lines of a split that `prepare` wrote: train, valid or test."""
    return (folder / f"{split}.{language}").read_text(encoding="utf-8").split("\n")[:-1]
