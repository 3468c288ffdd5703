"""The number of threads of a stage: the same for the whole run, since it affects rounding."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000"}
"""For processes that may share cores: their threads sleep while they wait, after spinning for some 100 microseconds.

A thread that sleeps at once is woken for every operation, which makes training steps on idle cores a fifth (fp32) to a
half (bf16) slower; with 1,000 spins it is still a sixth to two fifths. Ten times as many spins as here double the time
of two runs that share their cores.
"""


def wait_patiently() -> None:
    """Let threads sleep while they wait, unless the user chose otherwise; call this before torch is imported."""
    if not PATIENT.keys() & os.environ.keys():
        os.environ.update(PATIENT)


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
