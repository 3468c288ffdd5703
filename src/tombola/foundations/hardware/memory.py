"""The memory of this process: its peak, and how to keep it low."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt."""
_LARGE, _USUAL = 4 << 20, 32 << 20
"""Bytes from which a block is mapped by itself."""
_NEVER = 2**31 - 1
"""The largest number of bytes that mallopt takes."""


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, or 0 on Windows."""
    if sys.platform == "win32":
        return 0
    with suppress(OSError):  # getrusage counts the memory of the process that started this one, too
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def freed_at_once() -> Iterator[None]:
    """Within the block, return each freed tensor to the system at once, where the C library is glibc.

    glibc keeps freed blocks of up to 32 MB for later ones, and fragments them when tensors of several sizes come and
    go. Mapping every large tensor by itself costs some system time.
    """
    with _malloc(mapped_from=_LARGE, trimmed_from=None):
        yield


@contextmanager
def kept_for_reuse() -> Iterator[None]:
    """Within the block, keep freed tensors for those of the next step, where the C library is glibc.

    glibc returns blocks of more than 32 MB to the system, such as the gradient of the word embeddings. The system must
    then clear their pages anew in every step, which takes up to a sixth of a step on short texts.
    """
    with _malloc(mapped_from=_NEVER, trimmed_from=_NEVER):
        yield


@contextmanager
def _malloc(*, mapped_from: int, trimmed_from: int | None) -> Iterator[None]:
    """Set glibc's thresholds for the whole process; afterwards, as after the first large tensor is freed."""
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, mapped_from)
        if trimmed_from is not None:
            libc.mallopt(_TRIM_THRESHOLD, trimmed_from)
        libc.malloc_trim(0)
    try:
        yield
    finally:
        with suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None)
            libc.mallopt(_MMAP_THRESHOLD, _USUAL)
            libc.mallopt(_TRIM_THRESHOLD, 2 * _USUAL)
            libc.malloc_trim(0)
