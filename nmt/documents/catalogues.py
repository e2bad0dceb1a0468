"""Catalogues of strings: gettext (.po), JSON and YAML; their values are translated."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from nmt.documents.document_slots import Slots, is_language, marked
from nmt.documents.string_markup import CatalogueString, read_string
from nmt.text.tags import Segment

_STRING = r'"(?:[^"\\\r\n]|\\[^\r\n])*+"'
_FIELD = re.compile(
    r"^[ \t]*(msgctxt|msgid_plural|msgid|msgstr)(?:\[\d+\])?[ \t]*"
    rf"({_STRING}(?:[ \t]*\r?\n[ \t]*{_STRING})*)[ \t]*(?=\r?\n|\Z)",
    re.MULTILINE,
)
_ESCAPES = dict(zip('\\"\n\t\r\a\b\f\v', (rf"\{letter}" for letter in '\\"ntrabfv')))
_UNESCAPES = {escape[1]: character for character, escape in _ESCAPES.items()}
#: The declaration of the encoding in a gettext catalogue; templates declare CHARSET.
PO_DECLARED = r"Content-Type:[^\"\n]*charset=(?!CHARSET)([\w.-]+)"
_NOTE = "# Machine translation."


class PoEntry(NamedTuple):
    """An entry of a gettext catalogue: its fields, their names and values, the start of its comments, the comments."""

    fields: Sequence[re.Match[str]]
    values: Sequence[tuple[str, str]]
    start: int
    comments: str

    @property
    def fuzzy(self) -> bool:
        """Whether the translation is flagged as a guess."""
        return re.search(r"^[ \t]*#,.*\bfuzzy\b", self.comments, re.MULTILINE) is not None


def po_entries(text: str) -> Iterator[PoEntry]:
    """Yield the entries of a gettext catalogue, without obsolete entries.

    Raises:
        ValueError: a line does not belong in a catalogue.
    """
    fields, at = list[re.Match[str]](), 0
    for field in _FIELD.finditer(text):
        _check_between(text, at, field.start())
        at = field.end()
        if field[1] in ("msgctxt", "msgid") and any(each[1] == "msgstr" for each in fields):
            yield _entry(text, fields)
            fields = []
        fields.append(field)
    _check_between(text, at, len(text))
    if fields:
        yield _entry(text, fields)


def _check_between(text: str, start: int, end: int) -> None:
    for line in text[start:end].split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            raise ValueError(f"line {text.count(chr(10), 0, start) + 1} or the next one: '{line.strip()[:40]}'")


def _entry(text: str, fields: Sequence[re.Match[str]]) -> PoEntry:
    start = begin = fields[0].start()
    while (line := text[text.rfind("\n", 0, max(0, begin - 1)) + 1 : begin].lstrip())[:1] == "#" and line[:2] != "#~":
        begin = text.rfind("\n", 0, begin - 1) + 1
    return PoEntry(fields, [(field[1], _value(field[2])) for field in fields], begin, text[begin:start])


def read_po(text: str, slots: Slots) -> str:
    """The text of a gettext catalogue with marks for translations that are missing or fuzzy.

    New translations get the flag "fuzzy" and a comment.

    Raises:
        ValueError: a line does not belong in a catalogue.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    return marked(text, [mark for entry in po_entries(text) for mark in _marks(entry, slots, ending)])


def _marks(entry: PoEntry, slots: Slots, ending: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, mark) for an entry without a translation, or with a fuzzy translation."""
    values = dict(entry.values)
    strings = [field for field in entry.fields if field[1] == "msgstr"]
    translated = any(value for key, value in entry.values if key == "msgstr")
    if not strings or not is_language(values.get("msgid", "")) or (translated and not entry.fuzzy):
        return
    plural = values.get("msgid_plural", "")
    of_plural, single = read_string(plural), read_string(values["msgid"] if len(strings) > 1 or not plural else plural)
    if single is None or (len(strings) > 1 and of_plural is None):
        return

    def spelled(spell: Callable[[Segment], str], segment: Segment) -> str:
        rows = spell(segment).splitlines(True)
        lines = [f'"{"".join(_ESCAPES.get(each, each) for each in row)}"' for row in rows]
        return ending.join(['""', *lines] if len(lines) > 1 else lines or ['""'])

    for number, field in enumerate(strings):
        string = of_plural if number and of_plural is not None else single
        write = partial(spelled, string.spell)
        mark = slots.add(string.segment, field[2], write) if number < 2 else slots.also(field[2], write)
        yield (*field.span(2), mark)
    head = _flagged(entry.comments, entry.fuzzy, ending)
    yield entry.start, entry.fields[0].start(), slots.also(entry.comments, lambda _: head)


def _flagged(comments: str, fuzzy: bool, ending: str) -> str:
    """The comments of an entry with the note and the flag "fuzzy" added."""
    note = "" if _NOTE in comments else _NOTE + ending
    if fuzzy:
        return note + comments
    flagged, count = re.subn(r"^([ \t]*#,)", r"\1 fuzzy,", comments, count=1, flags=re.MULTILINE)
    return note + flagged + (f"#, fuzzy{ending}" if not count else "")


def _value(strings: str) -> str:
    joined = "".join(part[1:-1] for part in re.findall(_STRING, strings))
    return re.sub(r"\\(.)", lambda escape: _UNESCAPES.get(escape[1], escape[1]), joined)


_JSON = re.compile(r'("(?:[^"\\]|\\.)*+")(\s*:)?|([{}\[\],])')


def _message(value: str, slots: Slots) -> CatalogueString | None:
    """A translatable string; None without words, or with a choice between messages in ICU's format."""
    has_choice = re.search(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,", value) is not None
    slots.notes["messages with {..., plural or select, ...}, which are left as they were"] += has_choice
    return None if has_choice else read_string(value)


def read_json_strings(text: str, slots: Slots) -> str:
    """The text of a JSON file with marks for its strings that have words.

    Keys are not translated, nor values under a key that begins with @ or $. In the catalogue of a browser extension,
    only the values of "message" are translated.

    Raises:
        ValueError: the text is not JSON.
    """
    content = json.loads(text)
    of_browser = isinstance(content, dict) and bool(content)
    of_browser = of_browser and all(isinstance(each, dict) and "message" in each for each in content.values())
    ascii_only, has_slashes = "\\u" in text, "\\/" in text

    def spelled(spell: Callable[[Segment], str], segment: Segment) -> str:
        written = json.dumps(spell(segment), ensure_ascii=ascii_only)
        return written.replace("/", "\\/") if has_slashes else written

    marks = list[tuple[int, int, str]]()
    path = [""]  # the key at each depth; "" in a list
    for token in _JSON.finditer(text):
        if token[3] in ("{", "["):
            path.append("")
        elif token[3] in ("}", "]"):
            path.pop()
        elif token[2] is not None:
            path[-1] = json.loads(token[1])
        elif token[1] and not any(key.startswith(("@", "$")) for key in path):
            string = _message(json.loads(token[1]), slots)
            if string is not None and (not of_browser or path[2:] == ["message"]):
                marks.append((*token.span(1), slots.add(string.segment, token[1], partial(spelled, string.spell))))
    return marked(text, marks)


def read_yaml_strings(text: str, slots: Slots) -> str:
    """The text of a YAML file with marks for its values that are strings with words; keys are kept.

    Raises:
        ValueError: the text is not YAML.
    """
    marks = list[tuple[int, int, str]]()
    seen, in_flow = set[int](), re.search(r"[\[{]", text) is not None
    try:
        todo: list[Any] = [node for node in yaml.compose_all(text, yaml.SafeLoader) if node is not None][::-1]
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    while todo:
        node = todo.pop()
        if id(node) in seen:  # reached through an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            todo += [value for _, value in node.value][::-1]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value[::-1]
        elif node.tag == "tag:yaml.org,2002:str" and (string := _message(node.value, slots)) is not None:
            start, end = node.start_mark.index, node.end_mark.index
            start += len(re.match(r"(?:[&!]\S*\s+)*", text[start:end])[0])  # type: ignore[index]
            marks.append((start, end, slots.add(*_scalar(node, string, text[start:end], in_flow))))
    return marked(text, marks)


def _scalar(
    node: Any, string: CatalogueString, raw: str, in_flow: bool
) -> tuple[Segment, str, Callable[[Segment], str]]:
    """The arguments of `Slots.add` for a YAML string, which is written in its original style if possible."""
    special = re.compile(r"[\n\r\t]" + ("|[][{},?]" if in_flow else ""))

    def write_block(segment: Segment) -> str:
        ending = "\r\n" if "\r\n" in raw else "\n"
        first, *lines = raw.split(ending)
        indent = next((re.match(" *", line)[0] for line in lines if line.strip()), "  ")  # type: ignore[index]
        texts = [indent + line if line.strip() else "" for line in string.spell(segment).strip("\n").split("\n")]
        separator = ending if node.style == "|" else ending * 2
        return f"{first}{ending}{separator.join(texts)}{raw[len(raw.rstrip()) :]}"

    def write(segment: Segment) -> str:
        value = string.spell(segment)
        if node.style == "'" and "\n" not in value:
            return "'" + value.replace("'", "''") + "'"
        if node.style is None and not special.search(value) and _plain(value):
            return value
        return json.dumps(value, ensure_ascii=False)

    return string.segment, raw, write_block if node.style in ("|", ">") else write


def _plain(value: str) -> bool:
    """Whether YAML reads a value without quotes as this text."""
    try:
        return bool(yaml.safe_load(f"key: {value}") == {"key": value})
    except (yaml.YAMLError, ValueError, RecursionError):
        return False
