"""Two processes with half a batch each are one process with the whole, and survive being killed."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training import distilled_parallel
from tests.training.parallel import run
from tests.two_processes import launch, run_together

pytestmark = pytest.mark.slow
MODULE = "tests.training.parallel"


def test_two_processes_compute_what_one_does(tmp_path: Path) -> None:
    whole = run(tmp_path / "one", 8, dropout=0.0).state_dict()
    run_together(MODULE, tmp_path / "two", 0.0)
    halves = load_file(tmp_path / "two" / "trained.safetensors")
    assert all(torch.allclose(value, whole[name], atol=1e-6) for name, value in halves.items())


def test_two_processes_have_dropout_whoever_looks_at_the_model(tmp_path: Path) -> None:
    for name, dropout, every in (("plain", 0.0, 0), ("dropped", 0.2, 0), ("watched", 0.2, 2)):
        run_together(MODULE, tmp_path / name, dropout, 0, every)
    plain, dropped, watched = (
        load_file(tmp_path / name / "trained.safetensors") for name in ("plain", "dropped", "watched")
    )
    assert not any(torch.equal(value, plain[name]) for name, value in dropped.items())
    assert all(torch.equal(value, watched[name]) for name, value in dropped.items())


@pytest.mark.parametrize("step", [3, 5])  # inside an epoch, and between two
def test_a_killed_parallel_run_ends_bit_identical(tmp_path: Path, step: int) -> None:
    run_together(MODULE, tmp_path / "whole", 0.2)
    assert launch(MODULE, tmp_path / "killed", 0.2, step).returncode != 0
    assert (tmp_path / "killed" / "checkpoints" / f"step-{step}").is_dir()
    run_together(MODULE, tmp_path / "killed", 0.2)
    whole, resumed = (load_file(tmp_path / name / "trained.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(value, whole[name]) for name, value in resumed.items())


def test_two_processes_distil_what_one_does(tmp_path: Path) -> None:
    whole = distilled_parallel.run(tmp_path / "one", 8).state_dict()
    run_together("tests.training.distilled_parallel", tmp_path / "two")
    halves = load_file(tmp_path / "two" / "trained.safetensors")
    assert set(halves) == set(whole)
    assert all(torch.allclose(value, whole[name], atol=1e-5) for name, value in halves.items())
