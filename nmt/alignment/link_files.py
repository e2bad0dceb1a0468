"""Reading of files of word links, with checks against the words of the text."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.alignment.splitters import WordSplitters
from nmt.data.lines import read_lines
from nmt.links import GoldLinks, check_range, is_naacl, looks_based_on_one, parse_file, parse_numbered
from nmt.system.errors import UserError
from nmt.system.terminal import print_message


class LinksFile(NamedTuple):
    """A file of links, its setting (`key`), and the number of the first word (`base`, of the setting `gold_base`)."""

    key: str
    path: Path
    base: int

    def read(self, text: tuple[Sequence[str], Sequence[str]], words: WordSplitters) -> list[GoldLinks]:
        """Read the links of a text and check them against its words.

        Raises:
            UserError: a line is malformed, a link names a missing word, the number of sentence pairs differs, or
                there is no link.
        """
        base = self._replace(key=self.key.removeprefix("valid_"))
        links = base.parse(read_lines(self.path), len(text[0]))
        self.check_links(links)
        check_range_of_words(links, text, words, self.path)
        return links

    def parse(self, lines: Sequence[str], pairs: int) -> list[GoldLinks]:
        """Parse the lines of a file into the links of `pairs` sentence pairs (UserError if a line is malformed)."""
        links = parse_file(lines, str(self.path), base=self.base, pairs=pairs)
        self._doubt_base(links, is_naacl(lines))
        return links

    def parse_numbered(self, lines: Sequence[str]) -> dict[int, GoldLinks]:
        """Parse the lines of a file into links by number of the sentence pair (UserError if a line is malformed)."""
        links = parse_numbered(lines, str(self.path), base=self.base)
        self._doubt_base(links.values(), True)
        return links

    def check_links(self, links: Sequence[GoldLinks]) -> None:
        """Raise UserError if no sentence pair has links."""
        if not any(pair.possible for pair in links):
            raise UserError(f"{self.path} contains no links. Give another file: {self.key}=FILE.")

    def _doubt_base(self, links: Iterable[GoldLinks], numbered: bool) -> None:
        """Warn if words seem to be counted from 1 but are read as counted from 0."""
        if self.base == 0 and looks_based_on_one(links, numbered):
            what = "links word 0 to word 0" if numbered else "names a word 0"
            advice = f"If words are counted from 1, give {self.key}_base=1."
            print_message(f"warning: {self.path} never {what}. {advice}")


def check_range_of_words(
    links: Sequence[GoldLinks], text: tuple[Sequence[str], Sequence[str]], words: WordSplitters, path: Path
) -> None:
    """Raise UserError for the first link with a word that its sentence does not have."""
    sources, targets = ([len(split(line)) for line in side] for split, side in zip(words[1:], text, strict=True))
    check_range(links, sources, targets, str(path), f"words={words.name}")
