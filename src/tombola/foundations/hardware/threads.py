"""The number of threads of a stage: the same for the whole run, since it affects rounding."""

from collections.abc import Iterator
from contextlib import contextmanager

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""For processes that share cores: their threads sleep instead of spinning while they wait."""


def threads_of(chosen: int | None) -> int:
    """Return the chosen number of threads, else PyTorch's default: all cores, or OMP_NUM_THREADS."""
    import torch

    return chosen or torch.get_num_threads()


@contextmanager
def using_threads(chosen: int | None) -> Iterator[None]:
    """Set PyTorch's number of threads in this context; None leaves it unchanged."""
    if chosen is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(chosen)
    try:
        yield
    finally:
        torch.set_num_threads(before)
