"""One training process per run: a lock that the system releases with its process."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import UserError


class LockedError(UserError):
    """Another process trains the run."""


def lock_file(folder: Path) -> Path:
    """The lock file of a run: beside the run's folder, which may not exist yet."""
    return folder.parent / f".{folder.name}.lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run. The system frees it when the process ends, even if it is killed.

    Raises:
        LockedError: another process holds it.
        UserError: the lock file cannot be written.
    """
    path = lock_file(folder)
    new_folders = [parent for parent in path.parents if not parent.exists()]  # the innermost first
    with contextlib.ExitStack() as stack:
        for parent in reversed(new_folders):
            stack.callback(_remove_empty, parent)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            lock.acquire(timeout=0)
            stack.callback(lock.release)
            stack.callback(_remove, path)  # before the release, while no other process can hold the lock
        except Timeout as error:
            raise LockedError(
                f"{folder}: another process is training this run. Wait until it ends, or give another name=."
            ) from error
        except OSError as error:
            # Continue without a lock on file systems that have none, or if only the run folder is writable.
            without = error.errno in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP)
            if not without and not (folder.exists() and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)):
                raise UserError(
                    f"Cannot make {folder}: {error.strerror}. Choose another place with checkpoints=FOLDER."
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


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # Windows keeps the file of an open lock
        path.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the run is in it
        folder.rmdir()
