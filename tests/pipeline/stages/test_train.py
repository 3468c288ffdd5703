"""Training stages: what a plan refuses before anything is trained, and what is kept of epochs."""

from dataclasses import replace

import pytest

from tests.pipeline.running import execute, plans
from tombola.attacks.resources import ENCODER
from tombola.errors import TombolaError
from tombola.pipeline.references import ModelSource
from tombola.pipeline.stages.train import Train
from tombola.store.store import Store


def trainings(world, **changes):
    return [stage for stage in plans(world, **changes)[0].stages() if isinstance(stage, Train)]


def test_a_rewind_step_beyond_the_training_is_refused_with_both_numbers(world, tmp_path):
    changes = {"search": {"method": "iterative", "rewind_step": 5000}, "draw": {"sparsity": 0.1}}
    rewind = next(stage for stage in trainings(world, **changes) if stage.stop_at == 5000)
    with pytest.raises(
        TombolaError, match=r"step 5000 is beyond the end of the training, which takes \d+ opt"
    ):
        rewind.training_steps()
    with pytest.raises(TombolaError, match="step 5000 is beyond the end"):
        execute([rewind], Store(tmp_path))


def test_a_warm_up_beyond_the_training_is_refused_with_both_numbers(world):
    (stage,) = trainings(world, search=None, train={**world.recipe()["train"], "warmup": 5000})
    with pytest.raises(TombolaError, match=r"warmup: 5000 steps exceed .* \(\d+ optimizer steps\)"):
        stage.training_steps()


def test_the_models_of_epochs_are_numbered_from_one(world, tmp_path):
    train = {**world.recipe()["train"], "epochs": 3}
    attack = {"recipes": ["deepwordbug"], "every_epoch": True, "n": 2}
    (stage,) = trainings(world, search=None, train=train, attack=attack)
    store = Store(tmp_path)
    execute([stage], store)
    kept = sorted(path.name for path in (store.open(stage) / "epochs").iterdir())
    assert kept == ["1", "2", "3"]
    last = (store.open(stage) / "epochs" / "3" / "model.safetensors").read_bytes()
    assert last == (store.open(stage) / "model.safetensors").read_bytes()


def test_selective_training_of_no_steps_froze_nothing(world, tmp_path):
    train = {**world.recipe()["train"], "epochs": 0, "select": {"kind": "second", "upper": 60}}
    (stage,) = trainings(world, search=None, train=train)
    store = Store(tmp_path)
    execute([stage], store)
    assert store.read(stage).log.steps == 0
    assert store.read(stage).frozen is None


def test_the_encoder_of_an_attack_in_the_loop_is_part_of_the_key(world, monkeypatch):
    def key(**train):
        (stage,) = trainings(world, search=None, train={**world.recipe()["train"], **train})
        return stage.key

    plain, attacked = key(), key(adversary={"kind": "attack"})
    find = ModelSource.find

    def another(name, *rest):
        found = find(name, *rest)
        return replace(found, fingerprint="another") if name == ENCODER else found

    monkeypatch.setattr(ModelSource, "find", another)
    assert key() == plain
    assert key(adversary={"kind": "attack"}) != attacked


def test_selective_training_of_no_step_freezes_nothing(world, tmp_path):
    train = {"epochs": 0, "max_length": 16, "select": {"kind": "random", "upper": 50}}
    (stage,) = trainings(world, search=None, train=train)
    execute([stage], store := Store(tmp_path))
    assert store.read(stage).frozen is None
