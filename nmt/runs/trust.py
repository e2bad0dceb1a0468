"""A memory of the runs that this user has made: an empty file per run in the user's state folder, named by a hash.

The place is $XDG_STATE_HOME/nmt/trusted, or ~/.local/state/nmt/trusted (the XDG base directory specification). The hash
covers the settings and the command line, so a copy of a run is trusted as well, and a changed run is not.
"""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path


def trust_file(contents: Sequence[bytes]) -> Path:
    """Return the file that exists if this user has written these contents (RuntimeError without a home folder)."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = state if state.is_absolute() else Path("~/.local/state").expanduser()
    digests = b"".join(hashlib.sha256(content).digest() for content in contents)
    return state / "nmt" / "trusted" / hashlib.sha256(digests).hexdigest()


def trust(contents: Sequence[bytes]) -> bool:
    """Remember that this user has written these contents; return whether that was possible."""
    with contextlib.suppress(OSError, RuntimeError):
        path = trust_file(contents)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch()
        return True
    return False


def is_trusted(contents: Sequence[bytes]) -> bool:
    """Return whether this user has written these contents."""
    with contextlib.suppress(OSError, RuntimeError):
        return trust_file(contents).exists()
    return False
