"""The memory of the process."""

import subprocess
import sys

import pytest

FRAGMENTS = """
import torch
from tombola.foundations.hardware.memory import peak_memory, return_free_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

torch.ones(7 << 20)  # mapped on its own; once it is freed, smaller tensors come from the heap
large, small = [], []
for _ in range(16):
    large.append(torch.ones(4 << 20))
    small.append(torch.ones(1 << 10))
del large
before = resident()
return_free_memory()
print(before - resident(), peak_memory() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_memory_between_live_tensors_goes_back_to_the_system():
    done = subprocess.run([sys.executable, "-c", FRAGMENTS], check=True, capture_output=True, text=True)
    returned, above = map(int, done.stdout.split())
    assert returned > 8 * (16 << 20)
    assert -(8 << 20) < above < 1 << 30  # the kernel counts both in batches of pages
