"""A translation memory: pairs by human translators. A sentence of the memory gets its translation without a search."""

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nmt.data.columns import choose_columns
from nmt.data.languages import UNNAMED, canonical
from nmt.data.text_tables import language_of_column, number_of, read_table
from nmt.system.errors import UserError, install_command

#: The minimum similarity of a suggested pair: editing a less similar pair takes longer than translating anew.
LEAST = 0.6


class Remembered(NamedTuple):
    """A pair of a memory, and the similarity of its source to a text, from 0 (nothing in common) to 1 (equal)."""

    source: str
    target: str
    similarity: float


class TranslationMemory:
    """Pairs of source and translation. The last pair with a source wins; differences in white space are ignored."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Store the pairs, except those with a blank source or translation."""
        self._targets: dict[str, str] = {}
        for source, target in pairs:
            if (key := _key(source)) and target.strip():
                self._targets[key] = " ".join(target.split())

    def __len__(self) -> int:
        return len(self._targets)

    def exact(self, text: str) -> str | None:
        """The translation of a text; None if the memory does not have it."""
        return self._targets.get(_key(text))

    def similar(self, text: str, most: int = 3, least: float = LEAST) -> list[Remembered]:
        """At most `most` pairs with the sources most similar to a text by character edits, the most similar first.

        Raises:
            UserError: the package rapidfuzz is not installed.
        """
        if not can_compare():
            raise UserError(f"Similar pairs need the package rapidfuzz. Install it: {install_command('documents')}")
        from rapidfuzz import fuzz, process

        key = _key(text)
        matches = process.extract(key, self._targets.keys(), scorer=fuzz.ratio, limit=most, score_cutoff=100 * least)
        return [Remembered(source, self._targets[source], round(share / 100, 4)) for source, share, _ in matches]


def can_compare() -> bool:
    """Whether rapidfuzz, the package that finds similar pairs, is installed."""
    return importlib.util.find_spec("rapidfuzz") is not None


def open_memory(
    pairs: Path | str | Mapping[str, str] | None, languages: tuple[str, str] = UNNAMED
) -> TranslationMemory | None:
    """Open the translation memory of a request; None if `pairs` is None.

    Args:
        pairs: a file in any format that training reads, such as .tmx or .tsv; or a mapping source -> translation.
        languages: codes of source and target, by which the columns of a file are found.

    Raises:
        UserError: the file is missing or damaged, or has no pairs in these languages.
    """
    if pairs is None:
        return None
    if isinstance(pairs, Mapping):
        return TranslationMemory(pairs.items())
    path = Path(pairs)
    table = read_table(path)
    known = languages if all(number_of(code, table.header) for code in languages) else UNNAMED
    (source, target), _ = choose_columns(path, table, None, known)
    memory = TranslationMemory(zip(table.column(source), table.column(target), strict=True))
    named = [language_of_column(name) for number in (source, target) for name in table.header[number - 1 : number]]
    others = [
        name for name, code in zip(named, languages, strict=False) if name and canonical(name)[0] != canonical(code)[0]
    ]
    if not memory or (others and not set(languages) & {*UNNAMED}):
        raise UserError(f"{path} has no pairs from {languages[0]} to {languages[1]}, the languages of the run.")
    return memory


def _key(text: str) -> str:
    return " ".join(text.split())
