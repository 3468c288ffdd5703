"""What is written is what is read, for any optimizer; what cannot be written leaves the one before."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, TrainerState

from tests.tiny import tiny, token_ids
from tombola.errors import TombolaError
from tombola.training.checkpoints import (
    Checkpoints,
    restore_model,
    restore_optimizer,
    saved_rng,
    saved_seconds,
)
from tombola.training.optimizers import AdamaxW

OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, Any]]] = [
    (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    (AdamaxW, {"lr": 0.01, "foreach": True}),
    (torch.optim.SGD, {"lr": 0.01}),
    (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
]


def parts(kind: type[torch.optim.Optimizer], options: dict[str, Any], seed: int = 0) -> tuple[Any, Any, Any]:
    model = tiny("bert", "masked-lm", seed=seed)  # its output matrix is tied to its embeddings
    optimizer = kind(model.parameters(), **options)
    return model, optimizer, LambdaLR(optimizer, lambda step: 0.9**step)


def steps(model: PreTrainedModel, optimizer: Any, scheduler: Any, count: int) -> None:
    for index in range(count):
        model(token_ids(seed=index)).logits.square().mean().backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


def write(checkpoints: Checkpoints, model: Any, optimizer: Any, scheduler: Any, step: int) -> Path:
    return checkpoints.write(
        model, optimizer, scheduler, TrainerState(global_step=step), [{"process": 0}, {"process": 1}], 2.5
    )


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
def test_a_round_trip_goes_on_bit_for_bit(
    tmp_path: Path, kind: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    one, two = parts(kind, options), parts(kind, options, seed=1)
    steps(*one, count=3)
    path = write(Checkpoints(tmp_path, {}), *one, step=3)
    restore_model(path, two[0])
    restore_optimizer(path, *two[1:])
    steps(*one, count=2)
    steps(*two, count=2)
    assert two[0].cls.predictions.decoder.weight is two[0].bert.embeddings.word_embeddings.weight
    for first, second in zip(one[0].parameters(), two[0].parameters(), strict=True):
        assert torch.equal(first, second)
    assert one[2].get_last_lr() == two[2].get_last_lr()
    assert saved_rng(path, 1) == {"process": 1}
    assert saved_seconds(path) == 2.5


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path, {"seed": 1})
    some = parts(torch.optim.SGD, {"lr": 0.1})
    good = write(checkpoints, *some, step=2)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tombola.training.checkpoints.save_file", full)
    with pytest.raises(TombolaError, match=r"step-4 could not be written .*No space left.*step-2 is kept"):
        write(checkpoints, *some, step=4)
    assert [path.name for path in tmp_path.iterdir()] == ["step-2"]
    assert checkpoints.last() == good


def test_the_newest_is_found_by_its_number(tmp_path: Path) -> None:
    some = parts(torch.optim.SGD, {"lr": 0.1})
    nine = write(Checkpoints(tmp_path / "nine", {}), *some, step=9)
    ten = write(Checkpoints(tmp_path / "ten", {}), *some, step=10)
    for path in (nine, ten):
        path.rename(tmp_path / path.name)
    assert Checkpoints(tmp_path, {}).last() == tmp_path / "step-10"
    assert Checkpoints(tmp_path / "empty", {}).last() is None


def test_what_a_kill_left_of_an_older_one_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    """The newest one is damaged, and the one before was being deleted when the process died."""
    checkpoints, some = Checkpoints(tmp_path, {}), parts(torch.optim.SGD, {"lr": 0.1})
    old = write(checkpoints, *some, step=1)
    kept = shutil.copytree(old, tmp_path / "kept")
    new = write(checkpoints, *some, step=2)
    kept.rename(old)
    for name in ("checksums.json", "state.json"):
        (old / name).unlink()
    (new / "model.safetensors").write_bytes(b"damaged")
    assert checkpoints.last() is None
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_renamed_before_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, some = Checkpoints(tmp_path, {}), parts(torch.optim.SGD, {"lr": 0.1})
    write(checkpoints, *some, step=1)
    monkeypatch.setattr("tombola.training.checkpoints.shutil.rmtree", lambda *_, **__: None)  # killed before
    write(checkpoints, *some, step=2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["partial-step-1", "step-2"]
