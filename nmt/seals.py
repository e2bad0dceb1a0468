"""Seals: which files this user has written. A seal cannot be made without the user's key, which stays out of runs.

The key is a file of random bytes in the user's folder for the state of programs (the XDG base directory specification):
$XDG_STATE_HOME/nmt/key, or ~/.local/state/nmt/key. A seal is the HMAC of the contents (RFC 2104) with SHA-256.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from nmt import system

BYTES = 32


def key_file() -> Path:
    """The place of the user's key."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if Path(state).is_absolute() else Path("~/.local/state").expanduser()) / "nmt" / "key"


def seal(contents: Sequence[bytes]) -> str | None:
    """The seal of these contents, with a new key if there is none; None if no key can be kept."""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
        key = _key() or _new_key()
        return None if key is None else _of(key, contents)
    return None


def is_sealed(contents: Sequence[bytes], seals: Collection[str]) -> bool:
    """Whether one of the seals is this user's for these contents."""
    with contextlib.suppress(OSError, RuntimeError):
        key = _key()
        return key is not None and any(hmac.compare_digest(_of(key, contents), each) for each in seals)
    return False


def _of(key: bytes, contents: Sequence[bytes]) -> str:
    digests = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hmac.new(key, digests, hashlib.sha256).hexdigest()


def _key() -> bytes | None:
    """The key; None if there is none, or none that is whole."""
    try:
        key = key_file().read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) == BYTES else None


def _new_key() -> bytes | None:
    """Make the key that all processes of the user will read, whichever makes it first."""
    path = key_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent)  # for the user only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
        if path.exists() and _key() is None:  # damaged
            system.replace(Path(name), path)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return _key()
