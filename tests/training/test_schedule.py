"""How long a training is, and what it refuses because of it."""

from pathlib import Path

import pytest
import torch

from tests.tiny import tiny
from tests.training.test_run import Watch
from tests.training.toy import toy_train
from tombola.errors import TombolaError
from tombola.training import TrainSettings
from tombola.training.schedule import check_schedule, last_step, total_steps


def test_the_number_of_steps() -> None:
    assert total_steps(TrainSettings(epochs=2.5), batches=13) == 33
    assert total_steps(TrainSettings(epochs=3, accumulate=4), batches=10) == 9
    assert total_steps(TrainSettings(epochs=3, accumulate=4), batches=10, processes=2) == 6
    assert total_steps(TrainSettings(epochs=3, steps=100), batches=10) == 100
    assert total_steps(TrainSettings(epochs=3 * 0.1), batches=100) == 30
    assert total_steps(TrainSettings(epochs=0.001), batches=10) == 1


def test_stopping_early_follows_the_schedule_of_the_full_run(tmp_path: Path) -> None:
    whole, short = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    watch = Watch()
    full = toy_train(whole, tmp_path / "whole", callbacks=[watch], warmup=0.2)
    log = toy_train(short, tmp_path / "short", stop_at=4, warmup=0.2)
    assert log.steps == 4
    assert log.curve == full.curve[:4]
    assert all(torch.equal(value, watch.weights[4][name]) for name, value in short.state_dict().items())
    with pytest.raises(TombolaError, match="stop_at"):
        toy_train(short, tmp_path / "none", stop_at=0)


def test_a_step_beyond_the_end_is_refused_with_both_numbers(tmp_path: Path) -> None:
    assert [last_step(at, 10) for at in (None, 1, 10, 0.25, 0.01, 0.99)] == [10, 1, 10, 3, 1, 10]
    assert last_step(11 / 20, 100) == 55  # the product is 55.00000000000001
    with pytest.raises(TombolaError, match=r"step 11 is beyond the end .* takes 10 optimizer steps"):
        last_step(11, 10)
    model = tiny("bert", num_labels=2)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(TombolaError, match=r"step 11 .* 10 optimizer steps.*rewind_step"):
        toy_train(model, tmp_path, stop_at=11)
    assert all(torch.equal(value, start[name]) for name, value in model.state_dict().items())


def test_a_warm_up_longer_than_the_training_is_refused_with_both_numbers(tmp_path: Path) -> None:
    for warmup in (0.0, 0.9, 10):
        check_schedule(TrainSettings(warmup=warmup), 10)
    with pytest.raises(TombolaError, match=r"warmup: 3600 steps .* \(10 optimizer steps\)"):
        check_schedule(TrainSettings(warmup=3600), 10)
    with pytest.raises(TombolaError, match=r"warmup: 11 steps .* \(10 optimizer steps\)"):
        toy_train(tiny("bert", num_labels=2), tmp_path, warmup=11)
    toy_train(tiny("bert", num_labels=2), tmp_path, warmup=10)


def test_no_training_needs_no_schedule() -> None:
    check_schedule(TrainSettings(epochs=0, warmup=100), 0, stop_at=5)
