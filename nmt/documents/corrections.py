"""Corrections of translations by a person, stored in a translation memory (TMX 1.4)."""

import html
import time
from functools import partial
from pathlib import Path

from nmt.documents.document_slots import decode, is_unwritable
from nmt.documents.memories import table_of
from nmt.documents.xml_text import XML_DECLARED, check_xml
from nmt.system.errors import UserError
from nmt.system.files import write_bytes
from nmt.system.locks import Locked, LockedError, locked

#: The most bytes of a memory of corrections, some fifty thousand pairs: each new correction reads the whole file.
MOST_BYTES = 1 << 23
#: Seconds to wait while another correction is written to the same file.
PATIENCE = 10
_KEEPING = Locked("is writing corrections", "try again", "another folder")
_HEADER = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header creationtool="nmt" creationtoolversion="1" '
    'segtype="sentence" o-tmf="nmt" adminlang="en" srclang="{}" datatype="plaintext"/>\n<body>\n</body>\n</tmx>\n'
)
_escape = partial(html.escape, quote=False)


def keep_correction(path: Path, source: str, target: str, languages: tuple[str, str]) -> bool:
    """Append a pair to a memory, which is created if missing; its earlier contents stay byte for byte.

    Several threads and processes may do this at once.

    Returns:
        Whether the pair was added: false if it equals the last pair with this source.

    Raises:
        UserError: a text is blank or has characters that XML does not allow, or the file is not TMX, too large or
            not writable.
    """
    source, target = " ".join(source.split()), " ".join(target.split())
    for side, text in (("source", source), ("target", target)):
        if not text or is_unwritable(text):
            raise UserError(f"{side}: is blank, or has characters that no text has. Give a line with words.")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with locked(path, _KEEPING):
                return _added(path, source, target, languages)
        except LockedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _added(path: Path, source: str, target: str, languages: tuple[str, str]) -> bool:
    codes = [code.replace("_", "-") for code in languages]
    if codes[0].partition("-")[0].lower() == codes[1].partition("-")[0].lower():
        codes = ["source", "target"]  # readers distinguish the sides by language
    encoded = decode(_HEADER.format(html.escape(codes[0])).encode(), str(path))
    if path.exists():
        encoded = decode(path.read_bytes(), str(path), XML_DECLARED)
        try:
            is_memory = any(token.name == "tmx" for token in check_xml(encoded.text)[:10])
        except ValueError as error:
            raise UserError(f"{path}: not a valid .tmx file: {error}. Restore it, or move it away.") from error
        if not is_memory or (at := encoded.text.rfind("</body>")) < 0:
            raise UserError(f"{path}: not a .tmx file with a body. Move it away.")
        rows = [row.split("\t") for row in table_of(path).decode().splitlines()] if "<tu" in encoded.text else []
        short = [code.partition("-")[0].lower() for code in codes]  # as in the header of the table
        if rows and set(short) <= {*rows[0]}:
            ours, theirs = (rows[0].index(code) for code in short)
            last = next((row for row in reversed(rows) if row[ours] == source), None)
            if last is not None and last[theirs] == target:
                return False
    at = encoded.text.rfind("</body>")
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    variants = (
        f'<tuv xml:lang="{html.escape(code)}"><seg>{_escape(text)}</seg></tuv>\n'
        for code, text in zip(codes, (source, target), strict=True)
    )
    unit = f'<tu creationdate="{timestamp}">\n{"".join(variants)}</tu>\n'
    data = encoded.encode(encoded.text[:at] + unit + encoded.text[at:], markup=True)
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} would have more than {MOST_BYTES >> 20} MiB. Move it away, and begin another.")
    write_bytes(path, data)
    return True
