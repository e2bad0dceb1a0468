"""A scored split -> the files that the analyses of `nmt.compare` read: references and words, as the run knows them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.dataset import Split
from nmt.evaluation.references import FORCED_FILE, forced_rows
from nmt.evaluation.word_counts import WORDS_FILE, count, split_words, without_spaces
from nmt.system.files import write_pieces, write_text
from nmt.text.tokenizer import Vocabulary
from nmt.translation.translator import Translator
from nmt.translation.types import Translation


class AnalysedSplit(NamedTuple):
    """A translated split, and the settings of its analyses.

    Attributes:
        split: its text.
        translations: one for each line.
        references: those under forced decoding.
        rows: of these in the split, from 0.
        head: whose links are taken.
        shift: 0 or 1; see `nmt.alignment.word_weights`.
        training: the training text; None where it is unknown.
    """

    split: Split
    translations: Sequence[Translation]
    references: Sequence[Translation]
    rows: Sequence[int]
    head: str
    shift: int
    training: Split | None


def write_analyses(folder: Path, translator: Translator, analysed: AnalysedSplit) -> None:
    """Write `references.json` (`nmt.evaluation.references.forced_rows`) and `words.json`.

    `words.json` has an object for "source" and one for "target": a word of the split or of a translation -> its count
    in the training text, None where that is unknown, and the number of its pieces.
    """
    split = analysed.split
    characters = without_spaces(split.source), without_spaces(split.target)
    sides: Sequence[tuple[str, Sequence[str], Sequence[str], Vocabulary]] = (
        ("source", split.source, [], translator.tokenizer.source),
        ("target", split.target, [each.text for each in analysed.translations], translator.tokenizer.target),
    )
    known = {}
    for at, (side, lines, others, vocabulary) in enumerate(sides):
        found = sorted({word for line in (*lines, *others) for word in split_words(line, characters[at])})
        text = None if analysed.training is None else (analysed.training.source, analysed.training.target)[at]
        counts = {} if text is None else count(text, found, characters[at])
        pieces = map(len, vocabulary.encode(found))
        known[side] = {word: [counts.get(word), number] for word, number in zip(found, pieces, strict=True)}
    write_text(folder / WORDS_FILE, json.dumps(known, ensure_ascii=False) + "\n")
    lines_of = [row + 1 for row in analysed.rows]
    found_rows = forced_rows(analysed.references, lines_of, characters, analysed.head, analysed.shift)

    def pieces_of_file() -> Iterator[str]:
        for at, row in enumerate(found_rows):
            yield f"{',' if at else '['}\n{json.dumps(row)}"
        yield "\n]\n" if analysed.rows else "[]\n"

    write_pieces(folder / FORCED_FILE, pieces_of_file())
