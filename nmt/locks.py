"""One process per run, sweep or output: a lock that the system releases with its process."""

import contextlib
import errno
import os
import re
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from nmt.errors import UserError
from nmt.terminal import print_message

_HOLDER = re.compile(r"process (\d+) on ([\w.-]+) since (\d{4}-\d\d-\d\d \d\d:\d\d)")


class Locked(NamedTuple):
    """What a lock is for, in messages.

    Attributes:
        work: what its holder does, after "another process".
        cure: what another process can do.
        place: the setting that chooses another place.
    """

    work: str
    cure: str
    place: str


TRAINING = Locked("is training this run", "give another name=", "checkpoints=FOLDER")
SWEEP = Locked("is running this sweep", "give another name=", "checkpoints=FOLDER")
EVALUATION = Locked("is evaluating this split", "give another output=", "output=FOLDER")
OUTPUT = Locked("is writing this file", "give another output=", "output=FILE")


class LockedError(UserError):
    """Another process has the lock."""


def lock_file(path: Path) -> Path:
    """The lock file of a run or file: beside it, because it may not exist yet."""
    return path.parent / f".{path.name}.lock"


@contextlib.contextmanager
def locked(target: Path, purpose: Locked = TRAINING) -> Iterator[None]:
    """Hold the lock of a run or file. The system frees it when the process ends, even if it is killed.

    Where the file system has no locks, a message says so, and the work goes on.

    Raises:
        LockedError: another process holds it.
        UserError: the lock file cannot be written.
    """
    path = lock_file(target)
    new_folders = [parent for parent in path.parents if not parent.exists()]  # the innermost first
    with contextlib.ExitStack() as stack:
        for parent in reversed(new_folders):
            stack.callback(_remove_empty, parent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            holder = _holder(path)
            lock = FileLock(path)
            with warnings.catch_warnings(
                action="error", category=UserWarning
            ):  # filelock's, where it would go on with another kind of lock
                lock.acquire(timeout=0)
            stack.callback(lock.release)
            stack.callback(_remove, path)  # before the release, while no other process can hold the lock
            _sign(path)
        except Timeout as error:
            raise LockedError(
                f"{target}: another process {purpose.work}{holder}. Wait until it ends, or {purpose.cure}."
            ) from error
        except (OSError, UserWarning, RuntimeError) as error:
            # Continue without a lock on file systems that have none (filelock 3 raises a RuntimeError there, later ones
            # warn), or if only the run folder is writable.
            if not isinstance(error, OSError) or error.errno in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
                stack.callback(_remove, path)
                _say_without(target, purpose)
            elif not (target.exists() and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)):
                raise UserError(
                    f"Cannot make {target}: {error.strerror}. Choose another place with {purpose.place}."
                ) from error
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process trains the run now."""
    if not lock_file(folder).exists():
        return False
    try:
        with locked(folder):
            return False
    except LockedError:
        return True


def _sign(path: Path) -> None:
    """Write into a lock file who holds it, for the message of others."""
    host = re.sub(r"[^\w.-]", "", socket.gethostname()) or "this machine"
    with contextlib.suppress(OSError):  # Windows lets nobody write into it, and a full disk is said by the work
        path.write_text(f"process {os.getpid()} on {host} since {time.strftime('%Y-%m-%d %H:%M')}\n", encoding="ascii")


def _holder(path: Path) -> str:
    """Who holds a lock, in brackets; "" if its file does not say so."""
    with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
        match = _HOLDER.fullmatch(file.read(400).decode("ascii").strip())
        return f" ({match[0]})" if match else ""
    return ""


def _say_without(target: Path, purpose: Locked) -> None:
    print_message(
        f"{target}: this file system has no locks, so nothing notices whether another process {purpose.work}. Start "
        "one only.",
    )


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # Windows keeps the file of an open lock
        path.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the run is in it
        folder.rmdir()
