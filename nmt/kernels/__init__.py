"""The kernels room: fast computations, each next to the readable computation that defines its results.

Most files have `plain_NAME`, `fast_NAME`, a function that calls `fast_NAME` if possible, and a pointer to
`docs/benchmarks.md`. Inside `plain()`, which `model.fast=false` enters, only plain kernels run. The room imports torch
and, from `nmt`, only `nmt.system`.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_PLAIN = ContextVar("plain", default=False)


def is_fast() -> bool:
    """Whether fast kernels may run here."""
    return not _PLAIN.get()


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """Run the plain kernels only, in this thread."""
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)
