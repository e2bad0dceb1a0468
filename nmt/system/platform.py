"""Differences between Linux, macOS and Windows, for all other modules; signals are in `nmt.system.signals`."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final, Literal

#: Seconds until replacing a file fails that another program, such as a virus scanner, is using.
PATIENCE: Final = 5.0
# Windows has no POSIX process groups.
_POSIX: Final = hasattr(os, "killpg")
#: The keys that end the input in a terminal.
END_OF_INPUT: Final = "Ctrl-D" if _POSIX else "Ctrl-Z and Enter"
_RESERVED: Final = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def sync(path: Path) -> None:
    """Flush a file to the disk (OSError if this fails). Windows requires the file to be open for writing."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def replace(source: Path, target: Path) -> None:
    """Rename a file, replacing `target` if it exists (OSError if this fails).

    Windows cannot replace a file that a program has open or mapped into memory, so this retries for PATIENCE seconds.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if _POSIX or time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def name_problem(name: str) -> str:
    """The reason why a file or folder cannot have this name, in a few words; "" for a valid name."""
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        return "it is not one name"
    if not _POSIX and (bad := re.search(r'[<>:"|?*\\\x00-\x1f]', name)):
        return f"Windows allows no {bad[0]} in names"
    if not _POSIX and (name[-1] in " ." or _RESERVED.fullmatch(name)):
        return "Windows reserves it"
    return ""


def cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> int:
    """The available main memory in bytes."""
    import psutil  # type: ignore[import-untyped]

    return int(psutil.virtual_memory().available)


def peak_memory() -> int:
    """The peak main memory of this process, in bytes."""
    # Not getrusage first: it includes the parent's memory at the time of the fork.
    with contextlib.suppress(OSError):
        if match := re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii")):
            return 1024 * int(match[1])
    import psutil

    usage = psutil.Process().memory_info()
    if hasattr(usage, "peak_wset"):
        return int(usage.peak_wset)
    with contextlib.suppress(ImportError):
        import resource

        return max(int(usage.rss), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS
    return int(usage.rss)


def shell_quoted(word: str) -> str:
    """A word, quoted for the system's shells; on Windows for cmd and PowerShell."""
    return shlex.quote(word) if _POSIX else word if re.fullmatch(r"[\w.:/\\=+-]+", word) else f'"{word}"'


def shell_command(program: Literal["rm", "mkdir -p"], *paths: Path) -> str:
    """A command for the system's shells that the user can paste."""
    words = [program if _POSIX else {"rm": "del", "mkdir -p": "mkdir"}[program], *map(shell_quoted, map(str, paths))]
    return " ".join(words)


def apart() -> dict[str, Any]:
    """Arguments for `Popen` that protect a program from Ctrl-C; stop it with `ask_to_stop` or `kill`."""
    if _POSIX:
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def ask_to_stop(process: "subprocess.Popen[Any]") -> None:
    """Send a program that was started `apart` the signal to save its state and end."""
    with contextlib.suppress(ProcessLookupError):
        # On Windows, SIGTERM ends a program at once.
        process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))


def kill(process: "subprocess.Popen[Any]") -> None:
    """Kill a program that was started `apart`, with its child processes."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def was_killed(status: int) -> bool:
    """Whether the exit status means that the program was killed (SIGKILL)."""
    return status == -getattr(signal, "SIGKILL", 9)
