"""The memory of the process."""

import os
import platform
import subprocess
import sys

import pytest

FRAGMENTS = """
import sys
from contextlib import nullcontext
import torch
from tombola.foundations.hardware.memory import freed_at_once, peak_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

torch.ones(7 << 20)  # mapped on its own; once it is freed, smaller tensors come from the heap
with freed_at_once() if sys.argv[1] == "freed" else nullcontext():
    before, large, small = resident(), [], []
    for _ in range(16):
        large.append(torch.ones(4 << 20))
        small.append(torch.ones(1 << 18))
    del large
    print(resident() - before, peak_memory() - before)
"""
MEGABYTE = 1 << 20


def left_behind(how: str) -> int:
    """Return the memory that 16 freed tensors of 16 MB still take, with 16 of 1 MB between them."""
    command = [sys.executable, "-c", FRAGMENTS, how]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    left, peak = map(int, done.stdout.split())
    assert 250 * MEGABYTE < peak < 400 * MEGABYTE  # the kernel counts in batches of pages
    return left


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_memory_between_live_tensors_goes_back_to_the_system():
    assert left_behind("freed") < 32 * MEGABYTE
    if "glibc" in platform.libc_ver():
        assert left_behind("usual") > 200 * MEGABYTE


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_peak_is_that_of_the_process_itself():
    large = bytearray(400 * MEGABYTE)
    for at in range(0, len(large), 4096):
        large[at] = 1
    code = "from tombola.foundations.hardware.memory import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 200 * MEGABYTE


FAULTS = """
import resource, sys
from contextlib import nullcontext
import torch
from tombola.foundations.hardware.memory import kept_for_reuse

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with kept_for_reuse() if sys.argv[1] == "kept" else nullcontext():
    for _ in range(3):
        torch.ones(16 << 20)
    before = faults()
    for _ in range(10):
        torch.ones(16 << 20)
    print(faults() - before)
torch.ones(16 << 20)
before = faults()
torch.ones(16 << 20)
print(faults() - before)
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="only glibc can be told")
def test_freed_tensors_serve_the_next_step_without_new_pages():
    pages = (64 * MEGABYTE) // 4096

    def count(how: str) -> list[int]:
        command = [sys.executable, "-c", FAULTS, how]
        environment = {**os.environ, "THP_MEM_ALLOC_ENABLE": "0"}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return [int(line) for line in done.stdout.split()]

    within, after = count("kept")
    assert within < 3 * pages  # what is allocated in between may once or twice move a tensor to new memory
    assert after > pages / 2  # the setting ends with the block
    assert count("usual")[0] > 9 * pages
