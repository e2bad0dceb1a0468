"""Scores of a file of links against gold links; and functions that `nmt.align` shares: text, languages, the table.

Loads no torch, since scoring a file of links needs no model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.alignment.baselines import baselines
from nmt.alignment.error_rate import against_gold, as_row
from nmt.alignment.link_files import LinksFile, check_range_of_words
from nmt.alignment.splitters import WordSplitters
from nmt.build.paths import check_paths
from nmt.build.requests import check_pair
from nmt.data.languages import language_codes
from nmt.data.lines import read_lines, read_parallel_lines
from nmt.data.misalignment import doubts_about
from nmt.drawing.layout import plain_table
from nmt.links import NO_LINKS, Base, GoldLinks, Link, is_naacl
from nmt.system.errors import UserError, check_parallel
from nmt.system.terminal import print_message, printable

#: Settings that have no effect on a file of links.
_OF_RUNS = (
    *("run", "reverse", "split", "output", "matrix", "threshold", "symmetrize", "method", "shift", "head"),
    *("checkpoint", "valid_source", "valid_target", "valid_gold", "valid_words"),
)


@dataclass(frozen=True)
class Linking:
    """The settings of `nmt.align` for a file of links; `configs/align.yaml` explains them."""

    links: Path
    gold: Path | None
    source: Path | None
    target: Path | None
    links_base: Base
    gold_base: Base
    words: str
    languages: Any

    def __post_init__(self) -> None:
        if self.gold is None:
            raise UserError("links= needs gold links: give gold=FILE as well.")
        if self.words == "moses" and self.languages is None:
            raise UserError("words=moses needs the languages: give languages=[de,en].")


def score_links(request: Linking, overrides: Sequence[str]) -> int:
    """Print precision, recall and alignment error rate of `links` against `gold`."""
    for key in (key for key, _, value in (word.partition("=") for word in overrides) if value != "null"):
        if key in _OF_RUNS:
            raise UserError(f"links= and {key}= cannot be combined: {key}= is for making links.")
    assert request.gold is not None
    words = WordSplitters.of(request.words, named_languages(request.languages, ("", "")))
    text_files = {"source": request.source, "target": request.target}
    check_paths({"links": request.links, "gold": request.gold, **text_files}, {})
    files = [
        LinksFile("links", request.links, request.links_base),
        LinksFile("gold", request.gold, request.gold_base),
    ]
    contents = [read_lines(file.path) for file in files]
    sizes = {str(file.path): len(lines) for file, lines in zip(files, contents, strict=True) if not is_naacl(lines)}
    check_parallel(sizes)
    text = read_text(text_files)
    pairs = len(text[0]) if text else next(iter(sizes.values()), None)
    if pairs is None:
        # The number of pairs is unknown. Pairs that neither file names have no links and do not affect the scores.
        numbered = [file.parse_numbered(lines) for lines, file in zip(contents, files, strict=True)]
        named = sorted(numbered[0].keys() | numbered[1].keys())
        links, gold = ([by_number.get(number, NO_LINKS) for number in named] for by_number in numbered)
    else:
        links, gold = (file.parse(lines, pairs) for lines, file in zip(contents, files, strict=True))
    files[1].check_links(gold)
    if text:
        check_range_of_words(links, text, words, request.links)
        check_range_of_words(gold, text, words, request.gold)
    # Predicted links that are marked p (possible) count like others.
    predicted: dict[str, Sequence[Iterable[Link]]] = {str(request.links): [guess.possible for guess in links]}
    if text:
        predicted |= baselines(gold, words.sizes(*text))
    print(printable(table(predicted, gold)))
    return 0


def named_languages(named: Any, known: tuple[str, str]) -> tuple[str, str]:
    """The two codes of `languages=`, or `known` without this setting (UserError unless there are two)."""
    if named is None:
        return known
    if isinstance(named, str) or len(named) != 2:
        raise UserError(f"languages={named}: give two codes, languages=[de,en].")
    codes = ["no" if code is False else str(code) for code in named]  # YAML reads an unquoted `no` as false
    return language_codes((codes[0], codes[1]))


def read_text(files: Mapping[str, Path | None]) -> tuple[list[str], list[str]] | None:
    """The lines of two files, which are given by their settings; None if neither is set.

    Raises:
        UserError: only one is set, or the files have different numbers of lines.
    """
    check_pair(files, "links are between both")
    paths = [path for path in files.values() if path is not None]
    if not paths:
        return None
    source, target = read_parallel_lines(*paths)
    for doubt in doubts_about((source, target), list(map(str, paths))):
        print_message(doubt)
    return source, target


def table(predicted: dict[str, Sequence[Iterable[Link]]], gold: Sequence[GoldLinks]) -> str:
    """A table of alignment error rate, precision and recall, with a row for each set of links."""
    rows = [(name, *as_row(against_gold(links, gold))) for name, links in predicted.items()]
    sure, possible = (sum(len(links[kind]) for links in gold) for kind in (0, 1))
    return (
        plain_table(("links from", "AER", "precision", "recall"), rows)
        + f"\n({len(gold):,} sentence pairs; gold: {sure:,} sure links, {possible:,} with the possible ones)"
    )
