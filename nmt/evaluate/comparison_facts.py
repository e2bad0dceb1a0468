"""A scored split -> the files that the analyses of `nmt.compare` read: references and words, as the run knows them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nmt.data.dataset import Split
from nmt.evaluation.references import FORCED_FILE, json_rows
from nmt.evaluation.word_counts import WORDS_FILE, count, split_words, without_spaces
from nmt.system.files import write_pieces, write_text
from nmt.text.tokenizer import Tokenizer, Vocabulary
from nmt.translation.types import Translation


def write_analyses(
    folder: Path,
    split: Split,
    translations: Sequence[Translation],
    rows: Iterable[dict[str, Any]],
    tokenizer: Tokenizer,
    training: Split | None,
) -> None:
    """Write `references.json` and `words.json`.

    `words.json` has an object for "source" and one for "target": a word of the split or of a translation -> its count
    in the training text, None where that is unknown, and the number of its pieces.

    Args:
        folder: of the results.
        split: its text.
        translations: one for each line.
        rows: of the references (`nmt.evaluation.references.forced_rows`).
        tokenizer: of the run.
        training: the training text; None where it is unknown.
    """
    characters = without_spaces(split.source), without_spaces(split.target)
    sides: Sequence[tuple[str, Sequence[str], Sequence[str], Vocabulary]] = (
        ("source", split.source, [], tokenizer.source),
        ("target", split.target, [each.text for each in translations], tokenizer.target),
    )
    known = {}
    for at, (side, lines, others, vocabulary) in enumerate(sides):
        words = sorted({word for line in (*lines, *others) for word in split_words(line, characters[at])})
        text = None if training is None else (training.source, training.target)[at]
        counts = {} if text is None else count(text, words, characters[at])
        pieces = map(len, vocabulary.encode(words))
        known[side] = {word: [counts.get(word), number] for word, number in zip(words, pieces, strict=True)}
    write_text(folder / WORDS_FILE, json.dumps(known, ensure_ascii=False) + "\n")
    write_pieces(folder / FORCED_FILE, json_rows(rows))
