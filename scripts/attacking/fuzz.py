"""Attack with random inputs: lines to translate, and files of pairs to train on."""

import gzip
import random
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from attacking.victim import Result, run_verb, victim
from nmt import api
from nmt.data.sources import UserFiles
from nmt.system.errors import UserError

#: Pieces of lines: text, spaces, combining and direction marks, control characters, long words.
PIECES = (
    *(
        "a",
        "Spain",
        "12",
        "ß",
        "你好",
        "مرحبا",
        "é",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\u2028",
    ),
    *("\u0085", "\u00a0", " ", "  ", "\t", "\x00", "\x1b[31m", "\x07", "\x7f", "\ufffd", "\U0010ffff", "\ud7ff", "▁"),
    *("<unk>", "</s>", "<s>", "x" * 300, "1" * 50, "</script>", "${oc.env:HOME}", '"', "'", "\\", "|||", "0-0"),
    *("\x0b", "\x0c", "\x1c", "\x1e"),
)
#: Lines per file; every ALONE-th line is also translated alone.
LINES, ALONE = 250, 25
#: Relative difference of two scores that rounding can swap, after hundreds of pieces.
TIE = 1e-3
#: Minimum share of files of pairs that nmt must accept: otherwise the test would prove little.
ACCEPTED = 1 / 3


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Translate `count` lines, and read `count` files of pairs."""
    return [translating(victim(folder), count, seed, folder), data(count, seed, folder)]


def line(generator: random.Random) -> str:
    """A random line without a line feed or carriage return; some lines are empty."""
    kind = generator.random()
    if kind < 0.1:
        return "".join(chr(_code(generator)) for _ in range(generator.randint(0, 30)))
    return "".join(generator.choices(PIECES, k=generator.randint(0, 12 if kind < 0.97 else 200)))


def _code(generator: random.Random) -> int:
    """A random code point that UTF-8 can encode and that does not end a line."""
    while True:
        code = generator.randrange(generator.choice((0x80, 0x800, 0x10000, 0x110000)))
        if code not in (10, 13) and not 0xD800 <= code < 0xE000:
            return code


def translating(run: Path, count: int, seed: int, folder: Path) -> Result:
    """Translate lines: N lines must give N lines, and a line alone the same translation as in its batch."""
    generator, result = random.Random(f"{seed} translate"), Result("lines to translate")
    source, target = folder / "fuzz.txt", folder / "fuzz.out"
    translator = api.load(run, "device=cpu", "threads=1")
    warnings.simplefilter("ignore")  # about lines that are too long
    for first in range(0, count, LINES):
        lines = [line(generator) for _ in range(min(LINES, count - first))]
        source.write_bytes("".join(f"{each}\n" for each in lines).encode())
        target.unlink(missing_ok=True)
        ended = run_verb("translate", f"run={run}", f"input={source}", f"output={target}", "device=cpu", "threads=1")
        output = target.read_bytes().decode().split("\n")[:-1] if target.exists() else []
        if ended.status or ended.traceback or len(output) != len(lines):
            result.fail(f"lines {first} and on: {len(output)} lines, status {ended.status}, {ended.traceback}")
            continue
        for number, text in enumerate(lines):
            alone = translator.translate([text])[0] if number % ALONE == 0 else None
            if alone is None or alone.text == output[number]:
                result.add("translated" if text.strip() else "empty")
                continue
            score = translator.translate(lines)[number].score
            if abs(score - alone.score) > TIE * abs(score):
                result.fail(f"line {first + number}, {text!r}: alone it is translated otherwise")
            else:  # rounding has swapped two hypotheses
                result.add("tied with another translation")
    return result


def data(count: int, seed: int, folder: Path) -> Result:
    """Read files of pairs: both sides must have equal numbers of lines, or the error message must name a file."""
    generator, result = random.Random(f"{seed} data"), Result("files of pairs")
    place = folder / "pairs"
    place.mkdir(exist_ok=True)
    for number in range(count):
        paths = _pairs(generator, place)
        try:
            source = UserFiles([str(path) for path in paths], "en", "de", valid_pairs=1, test_pairs=0)
            split = source.read("train")
            if len(split.source) != len(split.target) or any("\n" in text for text in [*split.source, *split.target]):
                result.fail(f"input {number}: {len(split.source)} and {len(split.target)} lines")
            result.add("accepted")
        except UserError as error:
            if any(path.name in str(error) for path in paths) or "pairs" in str(error):
                result.add("refused")
            else:
                result.fail(f"input {number}: the message names no file: {error}")
        except Exception:
            result.fail(f"input {number}: {traceback.format_exc()}")
    if result.outcomes["accepted"] < ACCEPTED * count:
        result.fail(f"only {result.outcomes['accepted']} files were accepted, so the others say little")
    return result


def _pairs(generator: random.Random, place: Path) -> list[Path]:
    """Write two files, or one with tabs, plain or compressed; many have a defect."""
    count = generator.randint(3, 12)
    sides = [[f"{line(generator)}{number} x" for number in range(count)] for _ in range(2)]
    if generator.random() < 0.1:
        sides[generator.randint(0, 1)].append("one more")
    ending = generator.choice(("\n", "\n", "\r\n", "\r"))
    last = generator.choice(("\n", ""))
    mark = generator.choice((*[b""] * 6, b"\xef\xbb\xbf", b"\xff\xfe"))
    if generator.random() < 0.3:
        rows = ["\t".join(pair) for pair in zip(*([text.replace("\t", " ") for text in side] for side in sides))]
        contents, names = [rows], ["fuzz.tsv"]
    else:
        contents, names = sides, ["fuzz.en", "fuzz.de"]
    paths = []
    for name, rows in zip(names, contents, strict=True):
        encoded = mark + (ending.join(rows) + last).encode()
        encoded = _broken(encoded, generator) if generator.random() < 0.12 else encoded
        packed = generator.random() < 0.1
        path = place / (f"{name}.gz" if packed else name)
        whole = gzip.compress(encoded) if packed else encoded
        path.write_bytes(_broken(whole, generator) if packed and generator.random() < 0.3 else whole)
        paths.append(path)
    return paths


def _broken(content: bytes, generator: random.Random) -> bytes:
    """The content with one random change of its bytes."""
    changes: Sequence[Callable[[bytes], bytes]] = (
        lambda old: old[: generator.randrange(len(old) + 1)],
        lambda old: _with(old, generator, bytes([generator.randrange(256)])),
        lambda old: _with(old, generator, generator.randbytes(8)),
        lambda old: _with(old, generator, b"\n"),
        lambda old: _with(old, generator, b"\xed\xa0\x80"),  # a surrogate, which UTF-8 forbids
        lambda old: old * 2,
        lambda _: b"",
    )
    return generator.choice(changes)(content)


def _with(content: bytes, generator: random.Random, new: bytes) -> bytes:
    place = generator.randrange(len(content) + 1)
    return content[:place] + new + content[place + generator.randint(0, len(new)) :]
