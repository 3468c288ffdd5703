"""Garbage collection, put off while many objects are made that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 50_000
"""Objects made inside that are worth the trouble."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Inside, Python does not look for garbage, and what was made counts as old afterwards.

    For large plans: all of their many small objects stay, so that looking through them again and again finds nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            young, *_ = gc.get_count()
            if young > MANY and not gc.get_freeze_count():  # else the caller's own frozen objects would thaw
                gc.freeze()  # moves all objects out of the young generations, and the next line into the oldest one
                gc.unfreeze()
            gc.enable()
