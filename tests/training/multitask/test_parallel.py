"""Tasks shared by two processes: as by one, each step of one task under its mask, and killed without a trace."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.multitask.parallel import run
from tests.training.multitask.toy import snapshot
from tests.two_processes import launch, run_together

pytestmark = pytest.mark.slow
MODULE = "tests.training.multitask.parallel"


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_processes_share_as_one_does(tmp_path: Path, accumulate: int) -> None:
    whole = snapshot(run(tmp_path / "one", 8, accumulate, dropout=0.0))
    run_together(MODULE, tmp_path / "two", accumulate, 0.0)
    halves = load_file(tmp_path / "two" / "trained.safetensors")
    assert halves.keys() == whole.keys()
    for name, value in halves.items():
        assert torch.allclose(value, whole[name], atol=1e-6), name


def test_a_killed_parallel_run_ends_bit_identical(tmp_path: Path) -> None:
    run_together(MODULE, tmp_path / "whole", 1, 0.2)
    assert launch(MODULE, tmp_path / "killed", 1, 0.2, 5).returncode != 0
    assert (tmp_path / "killed" / "checkpoints" / "step-5").is_dir()
    run_together(MODULE, tmp_path / "killed", 1, 0.2)
    whole, resumed = (load_file(tmp_path / name / "trained.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(value, whole[name]) for name, value in resumed.items())
