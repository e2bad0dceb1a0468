"""The kernels room: every fast computation beside the readable computation that defines it.

Each file has `plain_NAME`, `fast_NAME`, a function that uses `fast_NAME` if possible, and a pointer to
`docs/benchmarks.md`. Inside `plain()`, which `model.fast=false` enters, only the plain ones run. The room imports torch
and of `nmt` only `nmt.system`.
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
