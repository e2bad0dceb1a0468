"""How the process asks the system for memory: set once, before training or translating."""

import ctypes
import sys

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
