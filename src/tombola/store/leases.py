"""Locks that show that a run has not ended, even while it is paused; a killed process loses its lock."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def at_work(root: Path) -> Iterator[None]:
    """Hold a lock next to the root of a run, unless the store is read-only.

    Args:
        root: The file of the root.
    """
    file = root.with_name(f"{root.stem}-{uuid.uuid4().hex}.lock")
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(FileLock(file))
            stack.callback(file.unlink, missing_ok=True)
        yield


def is_at_work(root: Path) -> bool:
    """Return whether a process holds a lock next to the root of a run, and remove the locks of killed ones.

    Args:
        root: The file of the root.
    """
    for file in root.parent.glob(f"{root.stem}-*.lock"):
        try:
            with FileLock(file, timeout=0):
                file.unlink(missing_ok=True)
        except Timeout:
            return True
        except OSError:
            continue
    return False
