"""Settings of the process: its allocator, return of free memory, and sharing of CPU cores."""

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Parameters of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def _libc() -> ctypes.CDLL | None:
    """The C library if it is glibc, else None."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        _ = library.mallopt, library.malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return library


def keep_memory() -> bool:
    """Let glibc's allocator keep freed memory; return whether this worked.

    Every step of training allocates the same large tensors. By default each tensor gets a new mapping, whose pages must
    be faulted in and zeroed. This takes an eighth of a step of the Multi30k recipe on one core.
    """
    library = _libc()
    if library is None:
        return False
    settings = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 1 << 26}
    done = [library.mallopt(parameter, value) for parameter, value in settings.items()]
    return all(done)


def share_cores() -> None:
    """Let waiting threads of GNU OpenMP sleep soon. Call this before torch is loaded.

    By default a waiting thread spins for milliseconds on a core that another thread needs. While other programs run,
    training on two threads then almost stops (docs/benchmarks.md). On an idle machine, threads spin ten times longer
    than on a busy machine, because waking them takes time. OMP_WAIT_POLICY in the environment takes precedence.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000" if is_idle() else "1000")


def is_idle() -> bool:
    """Whether the load average of the last minute is below 1; false if the system does not provide it."""
    try:
        return os.getloadavg()[0] < 1
    except (AttributeError, OSError):  # Windows has no such function
        return False


def bound_kernels() -> None:
    """Limit oneDNN's cache of compiled kernels. Call this before torch is loaded.

    Matrix products in bfloat16 compile a kernel for each shape. Batches have some thousand shapes. By default oneDNN
    and torch's layer above it each keep 1,024 kernels, which is most of the memory of a training (docs/benchmarks.md)
    and no faster than 64. With AMX, kernels take so long to compile that oneDNN keeps its 1,024.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024" if has_amx() else "64")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "64")


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """Run Python's garbage collector less often: pieces and spans are many objects, and none is in a cycle.

    By default the collector runs after each 700 new objects. In translation this takes a third of the time outside the
    search (docs/benchmarks.md, "Python's share of translating").
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def has_amx() -> bool:
    """Whether the processor has AMX instructions for bfloat16; false if the system does not tell."""
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def give_memory_back() -> bool:
    """Give free heap memory back to the system; return whether there was any.

    Batches differ in shape, so the heap of a long training becomes fragmented: without this call, it has 4.6 GiB after
    ten minutes for a model that needs 1.4 GiB.
    """
    library = _libc()
    return library is not None and bool(library.malloc_trim(0))
