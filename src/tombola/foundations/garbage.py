"""Postpone garbage collection while many long-lived objects are created."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 50_000
"""The number of new objects that makes it worthwhile."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection in this context, and treat the new objects as old afterwards.

    For large plans: all their small objects stay, so that scanning them repeatedly finds nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            young, *_ = gc.get_count()
            if young > MANY and not gc.get_freeze_count():  # else the caller's own frozen objects would thaw
                gc.freeze()  # takes all objects out of the young generations; unfreeze puts them into the oldest
                gc.unfreeze()
            gc.enable()
