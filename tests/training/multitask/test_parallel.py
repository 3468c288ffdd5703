"""Tasks shared by two processes: as by one, each step of one task under its mask, and killed without a trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.multitask.parallel import run
from tests.training.multitask.toy import snapshot

pytestmark = pytest.mark.slow


def launch(*arguments: object) -> int:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*command, "-m", "tests.training.multitask.parallel", *map(str, arguments)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
    ).returncode


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_processes_share_as_one_does(tmp_path: Path, accumulate: int) -> None:
    whole = snapshot(run(tmp_path / "one", 8, accumulate, dropout=0.0))
    assert launch(tmp_path / "two", accumulate, 0.0) == 0
    halves = load_file(tmp_path / "two" / "trained.safetensors")
    assert halves.keys() == whole.keys()
    for name, value in halves.items():
        assert torch.allclose(value, whole[name], atol=1e-6), name


def test_a_killed_parallel_run_ends_bit_identical(tmp_path: Path) -> None:
    assert launch(tmp_path / "whole", 1, 0.2) == 0
    assert launch(tmp_path / "killed", 1, 0.2, 5) != 0
    assert (tmp_path / "killed" / "checkpoints" / "step-5").is_dir()
    assert launch(tmp_path / "killed", 1, 0.2) == 0
    whole, resumed = (load_file(tmp_path / name / "trained.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(value, whole[name]) for name, value in resumed.items())
