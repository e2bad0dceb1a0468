"""Encodings of text that is not UTF-8: named by the user, or detected by the optional package charset-normalizer."""

import codecs

from nmt.system.errors import UserError, install_command

#: The encodings that can be detected: those of Windows, and others that are still common on the web.
_CANDIDATES = [
    *(f"cp{number}" for number in (1252, 1250, 1251, 1253, 1254, 1255, 1256, 1257)),
    *("iso8859_2", "koi8_r", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
_SAMPLE = 1 << 16  # maximum number of bytes for the detection
#: The setting for automatic detection.
RECOGNISE = "auto"


def check_encoding(encoding: str | None, setting: str) -> None:
    """Raise UserError if the encoding is unknown; `setting` is the key of the setting, for the message."""
    try:
        if encoding not in (None, RECOGNISE) and "a".encode(encoding) != b"a":
            raise LookupError
    except (LookupError, UnicodeError, TypeError) as error:
        raise UserError(
            f"{setting}={encoding}: must be auto or an encoding of text, for example cp1252 (Western Europe), cp1251 "
            "(Cyrillic), shift_jis."
        ) from error


def recognise(data: bytes, name: str) -> str:
    """Detect the encoding of bytes (UserError if no encoding fits, or the extra `documents` is not installed)."""
    if b"\0" in data:
        raise UserError(f"{name}: this is not text. Save it as UTF-8, or rename it.")
    try:
        from charset_normalizer import from_bytes
    except ModuleNotFoundError as error:
        raise UserError(
            f"{name}: not valid UTF-8. To recognise its encoding: {install_command('documents')}. Or give "
            "the encoding, for example encoding=cp1252."
        ) from error
    sample = b"\n".join(line for line in data.split(b"\n") if not line.isascii())[:_SAMPLE]
    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    if best is None or not any(not letter.isascii() for letter in str(best)):
        raise UserError(f"{name}: not valid UTF-8, and its encoding is not recognised. Give encoding=NAME.")
    western, other = (codecs.decode(sample, each, "replace") for each in ("cp1252", best.encoding))
    return "cp1252" if western == other else best.encoding
