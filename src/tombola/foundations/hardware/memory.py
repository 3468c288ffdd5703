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
    go. Mapping every large tensor by itself costs some system time. The setting holds for the whole process; after
    the block it is as it usually is in a process that has freed a large tensor.
    """
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _LARGE)
        libc.malloc_trim(0)
    try:
        yield
    finally:
        with suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None)
            libc.mallopt(_MMAP_THRESHOLD, _USUAL)
            libc.mallopt(_TRIM_THRESHOLD, 2 * _USUAL)
