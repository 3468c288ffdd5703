"""How many threads a stage computes with: one number for all of a run, since another number rounds otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""For processes that share the cores: their threads sleep while they wait for each other, and do not spin."""


def threads_of(chosen: int | None) -> int:
    """The number of threads that was chosen, else PyTorch's own: all cores, or OMP_NUM_THREADS."""
    import torch

    return chosen or torch.get_num_threads()


@contextmanager
def using_threads(chosen: int | None) -> Iterator[None]:
    """Inside, PyTorch computes with so many threads; with None, as many as before."""
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
