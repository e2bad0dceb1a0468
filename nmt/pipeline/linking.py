"""Links from anywhere against gold links, and what aligning shares with that: reading, checking, the table.

Loads no torch: scoring a file of links takes no model.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nmt.alignment.error_rate import against_gold, as_row
from nmt.alignment.splitting import Splitter, splitter
from nmt.command.composing import compose
from nmt.data.languages import language_codes
from nmt.data.lines import read_lines, read_parallel_lines
from nmt.drawing.layout import plain_table
from nmt.errors import UserError, check_parallel
from nmt.links import (
    NO_LINKS,
    GoldLinks,
    Link,
    check_range,
    is_naacl,
    looks_based_on_one,
    parse_file,
    parse_numbered,
)
from nmt.pipeline.paths import check_paths

#: What a file of links has no use for.
_OF_RUNS = (
    *("run", "reverse", "split", "output", "matrix", "threshold", "symmetrize"),
    *("valid_source", "valid_target", "valid_gold", "valid_words"),
)


#: Nor, where they are set, for how links are read off one.
_WAYS_OF_RUNS = ("method", "shift", "head", "checkpoint")


def score_links(config: DictConfig) -> int:
    """Prints precision, recall and alignment error rate of `links` against `gold`."""
    for key in _OF_RUNS:
        if config[key] is not None:
            raise _of_a_run(key)
    usual = compose("align", [])
    for key in _WAYS_OF_RUNS:
        if config[key] != usual[key]:
            raise _of_a_run(key)
    if config.gold is None:
        raise UserError("links= is scored against gold links: give gold=FILE as well.")
    if config.words == "moses" and config.languages is None:
        raise UserError("words=moses goes by the language, which links alone do not tell: give languages=[de,en].")
    split = splitters(str(config.words), named_languages(config.languages, ("", "")))
    paths = {key: Path(str(config[key])) for key in ("links", "gold", "source", "target") if config[key] is not None}
    check_paths(paths, {})
    lines = {key: read_lines(paths[key]) for key in ("links", "gold")}
    sized = [key for key, own in lines.items() if not is_naacl(own)]
    check_parallel({str(paths[key]): len(lines[key]) for key in sized})
    text = read_text(config, "source", "target")
    pairs = len(text[0]) if text else len(lines[sized[0]]) if sized else None
    if pairs is None:
        # Nothing tells how many pairs there are: those that neither file names have no links and change nothing.
        numbered = [_numbered(lines[key], paths[key], base(config, f"{key}_base"), key) for key in ("links", "gold")]
        named = sorted(numbered[0].keys() | numbered[1].keys())
        links, gold = ([own.get(sentence, NO_LINKS) for sentence in named] for own in numbered)
    else:
        links, gold = (_parsed(lines[key], paths[key], base(config, f"{key}_base"), key, pairs) for key in lines)
    _check_gold(gold, paths["gold"], "gold")
    if text:
        for found, key in ((links, "links"), (gold, "gold")):
            check_links(found, text, split, str(paths[key]), str(config.words))
    # Whoever guesses a link says that it is there: a mark p in such a file makes no difference.
    print(table({str(paths["links"]): [own.possible for own in links]}, gold))
    return 0


def base(config: DictConfig, key: str) -> int:
    """The number of the first word, 0 or 1 (UserError for any other)."""
    if config[key] not in (0, 1):
        raise UserError(f"{key}={config[key]}: words are counted from 0 or from 1.")
    return int(config[key])


def named_languages(named: Any, known: tuple[str, str]) -> tuple[str, str]:
    """The codes that `languages=` names, by default those that are known (UserError unless it names two)."""
    if named is None:
        return known
    if isinstance(named, str) or len(named) != 2:
        raise UserError(f"languages={named}: give two codes, languages=[de,en].")
    codes = ["no" if code is False else str(code) for code in named]  # YAML reads an unquoted `no` as false
    return language_codes((codes[0], codes[1]))


def splitters(words: str, codes: tuple[str, str]) -> tuple[Splitter, Splitter]:
    """What cuts source and target into words; see `nmt.alignment.splitting.splitter`."""
    return splitter(words, codes[0]), splitter(words, codes[1])


def read_text(config: DictConfig, source_key: str, target_key: str) -> tuple[list[str], list[str]] | None:
    """The lines of the files that two keys name; None where neither names one.

    Raises:
        UserError: one is named without the other, or they have different numbers of lines.
    """
    if config[source_key] is None and config[target_key] is None:
        return None
    if config[source_key] is None or config[target_key] is None:
        given, lacking = (source_key, target_key) if config[target_key] is None else (target_key, source_key)
        raise UserError(f"{given}= needs {lacking}= beside it: links are between both.")
    source, target = read_parallel_lines(*(Path(str(config[key])) for key in (source_key, target_key)))
    return source, target


def read_gold(
    key: str,
    config: DictConfig,
    text: tuple[Sequence[str], Sequence[str]],
    split: tuple[Splitter, Splitter],
    words: str,
) -> list[GoldLinks]:
    """The gold links of a text in the file that `key` names, checked against its words.

    Raises:
        UserError: a line is malformed, a link names a word that is not there, there are links for another number of
            sentence pairs, or there is no link.
    """
    path = Path(str(config[key]))
    gold = _parsed(read_lines(path), path, base(config, "gold_base"), "gold", len(text[0]))
    _check_gold(gold, path, key)
    check_links(gold, text, split, str(path), words)
    return gold


def _check_gold(gold: Sequence[GoldLinks], path: Path, key: str) -> None:
    """UserError for gold without any link: there is no error rate against nothing."""
    if not any(own.possible for own in gold):
        raise UserError(f"{path} holds no link, so that nothing can be measured against it. Give {key}= another file.")


def _parsed(lines: Sequence[str], path: Path, number: int, key: str, pairs: int) -> list[GoldLinks]:
    found = parse_file(lines, str(path), base=number, pairs=pairs)
    _doubt_base(found, is_naacl(lines), path, number, key)
    return found


def _numbered(lines: Sequence[str], path: Path, number: int, key: str) -> dict[int, GoldLinks]:
    found = parse_numbered(lines, str(path), base=number)
    _doubt_base(found.values(), True, path, number, key)
    return found


def _doubt_base(found: Iterable[GoldLinks], numbered: bool, path: Path, number: int, key: str) -> None:
    """Warns of links that seem to count from 1, where 0 was said."""
    if number == 0 and looks_based_on_one(found, numbered):
        what = "links word 0 to word 0" if numbered else "names a word 0"
        print(f"warning: {path} never {what}: if it counts from 1, give {key}_base=1.", file=sys.stderr)


def _of_a_run(key: str) -> UserError:
    return UserError(f"links= is scored as it is, and {key}= is for links that a run makes. Give one of them.")


def check_links(
    links: Sequence[GoldLinks],
    text: tuple[Sequence[str], Sequence[str]],
    split: tuple[Splitter, Splitter],
    name: str,
    words: str,
) -> None:
    """UserError for the first link that names a word which its sentence does not have."""
    sources, targets = ([len(cut(sentence)) for sentence in side] for cut, side in zip(split, text, strict=True))
    check_range(links, sources, targets, name, f"words={words}")


def table(predicted: dict[str, Sequence[Iterable[Link]]], gold: Sequence[GoldLinks]) -> str:
    """Error rate, precision and recall of sets of links, a row each."""
    rows = [(name, *as_row(against_gold(links, gold))) for name, links in predicted.items()]
    sure, possible = (sum(len(own[place]) for own in gold) for place in (0, 1))
    return (
        plain_table(("links from", "AER", "precision", "recall"), rows)
        + f"\n({len(gold):,} sentence pairs; gold: {sure:,} sure links, {possible:,} with the possible ones)"
    )
