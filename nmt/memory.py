"""What the process asks of the system: memory, given back when free, and its peak; cores, shared with others."""

import ctypes
import os
import re
import sys
from pathlib import Path

# Parameters of glibc's mallopt, from its malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def _libc() -> ctypes.CDLL | None:
    """The C library, where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        _ = library.mallopt, library.malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return library


def keep_memory() -> bool:
    """Let the allocator keep what is freed, where it is glibc's; return whether it could.

    Every step of training allocates the same large tensors. By default each is a fresh mapping whose pages are
    faulted in and zeroed again: an eighth of the time of a step of the Multi30k recipe on one core.
    """
    library = _libc()
    if library is None:
        return False
    settings = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 1 << 26}
    done = [library.mallopt(parameter, value) for parameter, value in settings.items()]
    return all(done)


def share_cores() -> None:
    """Let waiting threads of this process sleep soon, where OpenMP is GNU's. Call it before torch is loaded.

    By default a thread spins for milliseconds, and holds the core that the thread it waits for needs: beside other
    programs, training on two threads then all but stops (docs/benchmarks.md). A choice in the environment stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def give_memory_back() -> bool:
    """Return what is free inside the heap to the system; whether there was any.

    Batches differ in shape, so the heap of a long training becomes full of holes: without this, 4.6 GiB after ten
    minutes of a model that needs 1.4.
    """
    library = _libc()
    return library is not None and bool(library.malloc_trim(0))


def peak_memory() -> int:
    """The most main memory that this process has held, in bytes."""
    try:
        # getrusage's figure would count what the parent held when it started this program.
        match = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    except OSError:
        match = None
    if match:
        return 1024 * int(match[1])
    import resource  # POSIX only

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
