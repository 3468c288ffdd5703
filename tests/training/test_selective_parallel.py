"""Two processes with half a batch each choose what one with the whole does: `… FOLDER` is one of them."""

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import distributed

from tests.training.test_selective import dropping
from tests.training.test_selective_runs import paired
from tests.two_processes import left_together, run_together
from tombola.training.selective import Candidates, DropoutRisk, Selection


def chosen(part: int, parts: int) -> torch.Tensor:
    """The choice of a process that has one part of the batch."""
    model = dropping()
    logits, labels = paired(model, 8)
    risk = DropoutRisk(Candidates(model), Selection(kind="first", upper=55), summed=True)
    risk.measure(torch.cat([half.chunk(parts)[part] for half in logits.chunk(2)]), labels.chunk(parts)[part])
    return torch.stack(risk.take())


@pytest.mark.slow
def test_processes_choose_together(tmp_path: Path) -> None:
    alone = [chosen(part, 2) for part in range(2)]
    assert not torch.equal(*alone)
    run_together("tests.training.test_selective_parallel", tmp_path)
    found = [load_file(tmp_path / f"{rank}.safetensors")["chosen"] for rank in range(2)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], chosen(0, 1))


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    with left_together():
        save_file({"chosen": chosen(rank, 2)}, Path(sys.argv[1]) / f"{rank}.safetensors")
