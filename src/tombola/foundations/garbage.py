"""Garbage collection, put off while many objects are made that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
            if not gc.get_freeze_count():  # else the caller's own frozen objects would thaw
                gc.freeze()  # moves all objects out of the young generations, and the next line into the oldest one
                gc.unfreeze()
            gc.enable()
