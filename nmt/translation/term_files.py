"""Files of terms: tables of two columns (.tsv, .csv) and TBX, the XML format of terminology databases (ISO 30042)."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from nmt.data.languages import UNNAMED, canonical
from nmt.data.lines import read_lines
from nmt.data.streams import open_binary
from nmt.system.errors import UserError
from nmt.system.terminal import print_message
from nmt.text.tokenizer import Vocabulary
from nmt.translation.glossary import Entry, Glossary, Keep

#: Maximum size of a TBX file in bytes, and maximum nesting depth of its elements.
_MOST_BYTES, _MOST_DEPTH = 64 << 20, 50
_CURE = "Write a line as: source term TAB target term (more forms after |). Lines with # are comments."


def open_glossary(
    terms: Path | Mapping[str, str | Sequence[str]] | None,
    keep: Keep | Sequence[Keep] | None,
    vocabulary: Vocabulary,
    languages: tuple[str, str] = UNNAMED,
) -> Glossary | None:
    """Open the glossary of a request; None without terms and kinds of text to keep.

    Args:
        terms: a file, or a mapping of source terms to a target term or its forms.
        keep: kinds of text that stay untranslated.
        vocabulary: the target vocabulary.
        languages: codes of source and target, which select the terms of a TBX file.

    Raises:
        UserError: a file is invalid, a term has two translations, or the vocabulary has no pieces for a term.
    """
    if terms is None and not keep:
        return None
    entries = read_terms(terms, languages) if isinstance(terms, Path) else terms_of(terms or {})
    glossary = Glossary(entries, (keep,) if isinstance(keep, str) else keep or ())
    glossary.check(vocabulary)
    return glossary


def read_terms(path: Path, languages: tuple[str, str]) -> list[Entry]:
    """Read the terms of a file.

    Args:
        path: a .csv or .tbx file; any other file is read as tab-separated text.
        languages: codes of source and target, which select the terms of a TBX file.

    Raises:
        UserError: the file is missing or broken, has a line without two terms, or has no terms.
    """
    kind = path.suffix.lower()
    entries = list(_tbx(path, languages) if kind == ".tbx" else _table(path, kind == ".csv"))
    if not entries:
        raise UserError(f"{path} has no terms. {_CURE}")
    return entries


def terms_of(terms: Mapping[str, str | Sequence[str]]) -> list[Entry]:
    """Make terms from a mapping of source terms to a target term or its forms (UserError for a blank term)."""
    entries = []
    for source, target in terms.items():
        forms = _forms(target if isinstance(target, str) else "|".join(target))
        entry = Entry(_forms(source), forms, f"glossary['{source}']")
        if not (entry.sources and entry.targets):
            raise UserError(f"{entry.place}: a source and a target term are expected.")
        entries.append(entry)
    return entries


def _forms(cell: str) -> list[str]:
    return [form.strip() for form in cell.split("|") if form.strip()]


def _table(path: Path, is_csv: bool) -> Iterator[Entry]:
    lines = read_lines(path)
    # The delimiter is the mark that occurs in most lines, outside of quotes.
    counts = Counter(mark for line in lines for mark in set(re.sub('"[^"]*"', "", line)) & {",", ";"})
    return _rows(lines, str(path), "\t" if not is_csv else ";" if counts[";"] > counts[","] else ",")


def _rows(lines: Iterable[str], name: str, delimiter: str) -> Iterator[Entry]:
    is_wider = False
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = line.split("\t") if delimiter == "\t" else next(csv.reader([line], delimiter=delimiter))
        forms = [_forms(cell) for cell in cells[:2]]
        if len(forms) < 2 or not all(forms):
            raise UserError(f"{name}, line {number}: a source and a target term are expected. {_CURE}")
        if any(map(str.strip, cells[2:])) and not is_wider:
            is_wider = True
            print_message(f"note: {name}, line {number}: columns after the second one are not read. Forms go after |.")
        if number == 1 and [cell.strip().lower() for cell in cells[:2]] == ["source", "target"]:
            continue
        yield Entry(forms[0], forms[1], f"{name}, line {number}")


def _tbx(path: Path, languages: tuple[str, str]) -> list[Entry]:
    """Read the concepts with terms in both languages; entities are rejected, and external files are never read."""
    with open_binary(path) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UserError(f"{path} is larger than {_MOST_BYTES >> 20} MB. Leave out what is not for this translation.")
    if (at := data.find(b"<!ENTITY")) >= 0:
        line = 1 + data.count(b"\n", 0, at)
        raise UserError(f"{path}, line {line}: declares an entity. Write the text itself in its place.")
    entries, known, depth = list[Entry](), set[str](), 0
    wanted = [canonical(each)[0] for each in languages]
    parser = ElementTree.XMLParser(encoding="utf-8")  # `open_binary` gives UTF-8, whatever the file declares
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(data), ("start", "end"), parser):
            depth += 1 if event == "start" else -1
            if depth > _MOST_DEPTH:
                raise UserError(f"{path}: has elements within {_MOST_DEPTH} others, so it is no TBX file.")
            if event == "end" and _name(element) in ("termEntry", "conceptEntry"):
                terms = _terms(element)
                known.update(terms)
                source, target = (terms.get(each, []) for each in wanted)
                if source and target:
                    entries.append(Entry(source, target, f"{path}, concept {element.get('id', len(entries) + 1)}"))
                element.clear()
    except ElementTree.ParseError as error:
        raise UserError(f"{path}, line {error.position[0]}: not well-formed XML, so no TBX file.") from error
    if not entries:
        raise UserError(
            f"{path} has no terms from {languages[0]} to {languages[1]}, the languages of the run. Its languages: "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    return entries


def _terms(concept: ElementTree.Element) -> dict[str, list[str]]:
    """The terms of a concept by language."""
    terms: dict[str, list[str]] = {}
    for section in concept:
        if _name(section) in ("langSet", "langSec"):
            language, _ = canonical(section.get("{http://www.w3.org/XML/1998/namespace}lang", ""))
            texts = ("".join(each.itertext()) for each in section.iter() if _name(each) == "term")
            terms.setdefault(language, []).extend(" ".join(text.split()) for text in texts if text.strip())
    return terms


def _name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]
