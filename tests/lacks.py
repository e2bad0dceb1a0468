"""Takes from Python what Windows lacks. A test copies this file to a folder of the path, as sitecustomize.py.

The environment variable NMT_LACKS names the lacks, for every program that a test starts and those that it starts.
"""

import builtins
import errno
import os
import pathlib
import re
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

if sys.platform == "linux":
    import fcntl

_POSIX_MODULES = ("resource", "readline", "fcntl", "termios", "pwd", "grp", "syslog", "tty", "pty")


def no_posix_modules() -> None:
    """The program cannot import modules of POSIX. (Libraries, which know Linux by its name, can.)"""
    real = builtins.__import__

    def importing(name: str, names: Any = None, *more: Any, **named: Any) -> Any:
        caller = (names or {}).get("__name__", "")
        if name in _POSIX_MODULES and (caller.partition(".")[0] in ("nmt", "__main__")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, names, *more, **named)

    builtins.__import__ = importing  # type: ignore[assignment]


def no_posix_functions() -> None:
    """Functions of POSIX."""
    for name in (
        *("killpg", "getpgid", "setsid", "fork", "forkpty", "waitid", "getuid", "geteuid", "getgid"),
        *("sched_getaffinity", "sched_setaffinity", "getloadavg", "mkfifo", "mknod", "chown", "fchmod", "fchown"),
        *("pread", "pwrite", "nice", "posix_spawn"),
    ):
        if hasattr(os, name):
            delattr(os, name)


def no_posix_signals() -> None:
    """Signals that Windows does not know."""
    for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGQUIT", "SIGCHLD", "SIGXCPU"):
        delattr(signal, name)


def sync_needs_writing() -> None:
    """`os.fsync` of a file that was opened for reading fails."""
    real = os.fsync

    def fsync(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


def _in_use(path: Any) -> bool:
    """Whether this process has a file open, or mapped into memory."""
    real = os.path.realpath(path)
    listed = os.listdir("/proc/self/fd")
    names = [os.readlink(f"/proc/self/fd/{entry}") for entry in listed if os.path.lexists(f"/proc/self/fd/{entry}")]
    if real in names:
        return True
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return any(line.rstrip("\n").endswith(f" {real}") for line in maps)


def files_in_use_stay() -> None:
    """A file that is open or mapped can neither be replaced nor removed."""

    def guarding(real: Callable[..., None], places: slice) -> Callable[..., None]:
        def guarded(*paths: Any, **more: Any) -> None:
            for path in paths[places]:
                if isinstance(path, str | os.PathLike) and os.path.isfile(path) and _in_use(path):
                    raise PermissionError(errno.EACCES, "The file is in use by another process", str(path))
            real(*paths, **more)

        return guarded

    for name, places in (("replace", slice(2)), ("rename", slice(2)), ("unlink", slice(1)), ("remove", slice(1))):
        setattr(os, name, guarding(getattr(os, name), places))


def names_without_colons() -> None:
    """Names with a colon, a question mark and the like are refused."""

    def guarding(real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: Any, *rest: Any, **more: Any) -> Any:
            name = os.fsdecode(path) if isinstance(path, str | os.PathLike) else ""
            if re.search(r'[<>:"|?*]', name) and not name.startswith(("/proc/", "/dev/", "/sys/")):
                raise OSError(errno.EINVAL, "Invalid argument", name)
            return real(path, *rest, **more)

        return guarded

    for name in ("mkdir", "open"):
        setattr(os, name, guarding(getattr(os, name)))
    opening = guarding(pathlib.io.open)  # type: ignore[attr-defined]
    pathlib.io = type("io", (), {**vars(pathlib.io), "open": staticmethod(opening)})  # type: ignore[attr-defined]


def encodings_are_named() -> None:
    """Text is cp1252 where no encoding is named, so naming none is an error."""
    warnings.filterwarnings("error", category=EncodingWarning, module=r"nmt(\.|$)")


def no_proc() -> None:
    """There is no /proc."""
    real = pathlib.Path.read_text

    def read_text(self: pathlib.Path, *more: Any, **named: Any) -> str:
        if str(self).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(self))
        return real(self, *more, **named)

    pathlib.Path.read_text = read_text  # type: ignore[method-assign]


LACKS = {
    lack.__name__: lack
    for lack in (
        no_posix_modules,
        no_posix_functions,
        no_posix_signals,
        sync_needs_writing,
        files_in_use_stay,
        names_without_colons,
        encodings_are_named,
        no_proc,
    )
}

for name in filter(None, os.environ.get("NMT_LACKS", "").split(",")):
    LACKS[name]()
