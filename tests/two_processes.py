"""Two processes that compute together (gloo), each the main program of a module."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import distributed

ROOT = Path(__file__).parent.parent


def launch(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE ARGUMENTS` twice at once, and wait for both."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*launcher, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def run_together(module: str, *arguments: object) -> None:
    """Run them, and fail with what they printed unless both succeed."""
    done = launch(module, *arguments)
    assert done.returncode == 0, f"{module} {arguments}\n{done.stdout}\n{done.stderr}"


@contextmanager
def left_together() -> Iterator[bool]:
    """Let the processes leave only when both have finished the block; yield whether this is the first.

    A process that ends while the other is still connected to it can make that one fail.
    """
    yield os.environ["RANK"] == "0"
    distributed.barrier()
    distributed.destroy_process_group()
