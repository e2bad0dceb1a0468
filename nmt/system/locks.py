"""Locks that allow only one process per run, sweep or output; the system releases them when the process ends."""

import contextlib
import errno
import os
import re
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from nmt.system.errors import UserError
from nmt.system.terminal import print_message

_ATTEMPTS = 100
#: Guards the warning filters, which all threads share. New versions of filelock warn if a file system has no locks.
_WARNINGS = threading.Lock()
_HOLDER = re.compile(r"process \d+ on [\w.-]+ since \d{4}-\d\d-\d\d \d\d:\d\d$", re.ASCII)


class Locked(NamedTuple):
    """The purpose of a lock, for messages."""

    work: str  # the activity of the holder, after "another process"
    cure: str  # the advice to another process
    place: str  # the setting that chooses another place


TRAINING = Locked("is training this run", "give another name=", "checkpoints=FOLDER")
SWEEP = Locked("is running this sweep", "give another name=", "checkpoints=FOLDER")
EVALUATION = Locked("is evaluating this split", "give another output=", "output=FOLDER")
OUTPUT = Locked("is writing this file", "give another output=", "output=FILE")


class LockedError(UserError):
    """Another process has the lock."""


def lock_file(path: Path) -> Path:
    """The lock file of a run or file; it is next to the run or file, which may not exist yet."""
    return path.parent / f".{path.name}.lock"


@contextlib.contextmanager
def locked(target: Path, purpose: Locked = TRAINING) -> Iterator[None]:
    """Hold the lock of a run or file. The system releases the lock when the process ends, even if it is killed.

    If the file system has no locks, a message is printed, and the work continues without a lock.

    Raises:
        LockedError: another process holds the lock.
        UserError: the lock file cannot be written.
    """
    lock = FileLock(path := lock_file(target))
    new_folders = [parent for parent in path.parents if not parent.exists()]  # the innermost first
    is_writable = False
    try:
        is_writable = _acquire(lock, path, target, purpose)
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows cannot delete open files, and new folders may not be empty now
            if is_writable:
                path.unlink(missing_ok=True)  # before the release, while no other process can hold the lock
            for folder in new_folders:
                folder.rmdir()
        lock.release()


def _holder(path: Path) -> str:
    """The holder that is written in the lock file, for a message; "" without a holder."""
    try:
        match = _HOLDER.match(path.read_bytes()[:400].decode("ascii", "replace"))
    except FileNotFoundError:
        return ""
    return f" ({match[0]})" if match else ""


def _acquire(lock: FileLock, path: Path, target: Path, purpose: Locked) -> bool:
    """Acquire the lock, and write the holder into its file; return whether the lock file can be written."""
    try:
        holder = _holder(path)
        for attempt in range(_ATTEMPTS):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _WARNINGS, warnings.catch_warnings(action="error", category=UserWarning):  # handled below
                    lock.acquire(timeout=0)
                break
            except (FileNotFoundError, FileExistsError):  # another process has just removed its new folder
                if attempt == _ATTEMPTS - 1:
                    raise
        host = re.sub(r"[^\w.-]", "", socket.gethostname()) or "this machine"
        with contextlib.suppress(OSError):  # locked files are read-only on Windows; the work reports a full disk
            path.write_text(f"process {os.getpid()} on {host} since {time.strftime('%Y-%m-%d %H:%M')}\n", "ascii")
    except Timeout as error:
        raise LockedError(
            f"{target}: another process {purpose.work}{holder}. Wait until it ends, or {purpose.cure}."
        ) from error
    except (OSError, UserWarning, RuntimeError) as error:
        number = (error.errno or errno.EIO) if isinstance(error, OSError) else errno.ENOLCK
        if number in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
            print_message(
                f"{target}: this file system has no locks, so nothing notices whether another process {purpose.work}. "
                "Start one only."
            )
            return True
        if not (target.exists() and number in (errno.EACCES, errno.EPERM, errno.EROFS)):
            raise UserError(
                f"Cannot make {target}: {os.strerror(number)}. Choose another place with {purpose.place}."
            ) from error
        return False  # only the run itself is writable: continue without a lock
    return True


def is_locked(folder: Path) -> bool:
    """Whether a process is training the run now."""
    if not lock_file(folder).exists():
        return False
    try:
        with locked(folder):
            return False
    except LockedError:
        return True
