"""Files of a scored split for the analyses of `nmt.compare`: references under forced decoding, and word counts."""

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

    `words.json` has an object for "source" and one for "target". Each maps a word of the split or of a translation to
    its count in the training text (null if unknown) and its number of pieces.

    Args:
        folder: the folder of the results.
        split: the text.
        translations: one translation for each line.
        rows: the rows of `references.json` (`nmt.evaluation.references.forced_rows`).
        tokenizer: the run's tokenizer.
        training: the training text; None if unknown.
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
