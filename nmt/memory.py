"""The process and its memory: how it asks the system for it, set once before training or translating; its peak."""

import ctypes
import re
import resource
import sys
from pathlib import Path

# Parameters of glibc's mallopt, from its malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def keep_memory() -> bool:
    """Lets the allocator keep what is freed, where it is glibc's; returns whether it could.

    Every step of training allocates the same large tensors. By default each is a fresh mapping whose pages are
    faulted in and zeroed again, which took a third of the time of a step of the default model on one core.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    most = 2**31 - 1
    return all([mallopt(_MMAP_THRESHOLD, 1 << 30), mallopt(_TRIM_THRESHOLD, most), mallopt(_TOP_PAD, 1 << 26)])


def peak_memory() -> int:
    """The most main memory that this process has held, in bytes."""
    try:
        # getrusage's figure would count what the parent held when it started this program.
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    except OSError:
        found = None
    if found:
        return 1024 * int(found[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
