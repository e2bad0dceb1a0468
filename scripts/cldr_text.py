"""Generate text from the CLDR: the built-in corpus in other languages, and the files that the package ships.

    python scripts/cldr_text.py phrases FOLDER [source=en] [target=eu] [seed=1] [train=20000] [valid=500] [test=500]
    python scripts/cldr_text.py documents FOLDER [source=en] [target=de] [seed=1] [train=6000] [valid=100] [test=300]
    python scripts/cldr_text.py package

`phrases` and `documents` write train, valid and test of both languages, with gold word links (FOLDER/train.links).
Source and target are locales of Babel, such as ja, pt_BR or zh_Hans. `package` rewrites the files in nmt/data/shipped.
Babel is a development dependency; another release of it has another CLDR, and gives another text.
"""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.core import parse_locale
from cldr.documents import Line, document_splits
from cldr.languages import table
from cldr.locales import Language
from cldr.phrases import pair_splits
from verbs import ROOT, key_values, script

from nmt.system.errors import UserError
from nmt.system.files import write_text

SHIPPED = ROOT / "nmt" / "data" / "shipped"
KINDS = {
    "phrases": {"source": "en", "target": "eu", "seed": "1", "train": "20000", "valid": "500", "test": "500"},
    "documents": {"source": "en", "target": "de", "seed": "1", "train": "6000", "valid": "100", "test": "300"},
}


def main(arguments: Sequence[str]) -> int:
    """Write the text of one kind, or the files of the package; return the exit status."""
    match arguments:
        case ["package"]:
            for kind, settings in KINDS.items():
                _ship(f"{kind}.tsv.xz", "".join(_rows(corpus(kind, settings))))
            _ship("languages.json.xz", json.dumps(table(), ensure_ascii=False, separators=(",", ":")))
        case [kind, folder, *words] if kind in KINDS:
            given = key_values(words)
            if unknown := given.keys() - KINDS[kind].keys():
                raise UserError(f"{min(unknown)}= is not a setting. Give {', '.join(KINDS[kind])}.")
            settings = KINDS[kind] | given
            write(Path(folder), corpus(kind, settings), (settings["source"], settings["target"]), kind == "documents")
            print(
                f"python -m nmt.train data=text data.source={settings['source']} data.target={settings['target']} "
                f"data.train={folder}/train data.valid={folder}/valid data.test={folder}/test"
                f"{' data.documents=blank' if kind == 'documents' else ''}"
            )
        case _:
            raise UserError("give phrases FOLDER, documents FOLDER, or package.")
    return 0


def corpus(kind: str, settings: Mapping[str, str]) -> dict[str, list[Line]]:
    """Generate the lines of each split (UserError for an invalid setting)."""
    source, target = (Language(locale_of(settings[side])) for side in ("source", "target"))
    numbers = {}
    for name in ("seed", "train", "valid", "test"):
        if not settings[name].isdecimal() or not int(settings[name]):
            raise UserError(f"{name}={settings[name]}: must be a whole number of at least 1.")
        numbers[name] = int(settings[name])
    seed = numbers.pop("seed")
    if kind == "documents":
        return document_splits(source, target, seed, numbers)
    return {
        name: [Line(None, pair) for pair in pairs] for name, pairs in pair_splits(source, target, seed, numbers).items()
    }


def write(folder: Path, splits: Mapping[str, Sequence[Line]], languages: tuple[str, str], blank: bool) -> None:
    """Write each split as two text files and its links; with `blank`, an empty line separates documents."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in splits.items():
        rows = list[tuple[str, str, str]]()
        for line, following in zip(lines, [*lines[1:], None], strict=True):
            rows.append((line.pair.source, line.pair.target, line.pair.links()))
            if blank and following is not None and following.document != line.document:
                rows.append(("", "", ""))
        for ending, column in zip((*languages, "links"), zip(*rows, strict=True), strict=True):
            write_text(folder / f"{name}.{ending}", "".join(f"{text}\n" for text in column))


def locale_of(code: str) -> Locale:
    """Babel's locale for a code such as de, zh_Hans or pt-BR (UserError if there is none)."""
    try:
        tag = code.replace("-", "_")
        locale = Locale.parse(tag)
        # Babel silently drops an unknown script or territory.
        _, territory, script_code, *_ = parse_locale(tag)
        if (territory or locale.territory, script_code or locale.script) != (locale.territory, locale.script):
            raise UnknownLocaleError(tag)
        return locale
    except (UnknownLocaleError, ValueError, TypeError) as error:
        raise UserError(f"{code}: Babel has no such locale. Give a code such as en, eu, pt_BR or zh_Hans.") from error


def _rows(splits: Mapping[str, Sequence[Line]]) -> Iterator[str]:
    """A row for each line: split, document, source, target, links, and any wrong translations."""
    for name, lines in splits.items():
        for line in lines:
            document = "" if line.document is None else f"{line.document}"
            yield "\t".join((name, document, *line.pair[:2], line.pair.links(), *line.wrong)) + "\n"


def _ship(name: str, text: str) -> None:
    SHIPPED.mkdir(exist_ok=True)
    (SHIPPED / name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    raise SystemExit(script("cldr_text.py", main))
