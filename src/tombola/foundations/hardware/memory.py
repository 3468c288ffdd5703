"""The memory of this process: its peak, and how to return what is free to the system."""

import ctypes
import sys
from contextlib import suppress


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, or 0 on Windows."""
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def return_free_memory() -> None:
    """Return freed memory to the system, where the C library is one that keeps it (glibc).

    After a tensor of a few megabytes is freed, glibc takes all smaller ones from its heap, which only grows when
    tensors of several sizes come and go.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
