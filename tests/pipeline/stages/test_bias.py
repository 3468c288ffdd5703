"""The stages that prepare debiasing, on a small world: bias, teacher, and the data they read."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from pydantic import TypeAdapter

from tests.pipeline.running import execute, plans
from tests.world import World
from tombola.bias import BiasModel, read
from tombola.errors import DataError, RecipeError
from tombola.evaluation.predict import predict
from tombola.foundations.caching import run_cache
from tombola.masks import MASK, Mask, Units
from tombola.models.loading import load_model, load_tokenizer
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.bias import DESCRIPTION, Bias
from tombola.pipeline.stages.evaluate import Evaluate
from tombola.pipeline.stages.teacher import Teacher
from tombola.pipeline.stages.train import Train
from tombola.store.stage import Stage
from tombola.store.store import Store
from tombola.tasks import Task, collate_of, encode
from tombola.tasks.mixing import Mixed
from tombola.tasks.synthetic import SyntheticBias
from tombola.tasks.targets import all_targets, find_target
from tombola.training.settings import TrainSettings


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def data(world: World, split: str = "train", **changes: Any) -> DataSource:
    return DataSource.find(str(world.task), split, **changes)


def bias_stage(settings: dict[str, Any], source: DataSource) -> Bias:
    return Bias.of(TypeAdapter(BiasModel).validate_python(settings), source, seed=1)


def finished(store: Store, stage: Stage[Any]) -> Path:
    execute([stage], store)
    return store.open(stage)


def with_companion(world: World, folder: Path) -> World:
    """The world's task beside one whose labels are called otherwise and one that has no data."""
    for name, labels in (("near", ["Negative", "positive"]), ("gone", ["negative", "positive"])):
        content = yaml.safe_load(world.task.read_text())
        files = {"validation": str(f"{name}.tsv")}
        (folder / f"{name}.yaml").write_text(
            yaml.safe_dump({**content, "name": name, "labels": labels, "source": {"files": files}})
        )
    (folder / "near.tsv").write_text("sentence\tlabel\nlovely film\tpositive\ndull film\tNegative\n")
    content = yaml.safe_load(world.task.read_text())
    for split in ("train", "validation", "other"):
        (folder / f"{split}.tsv").write_text((world.task.parent / f"{split}.tsv").read_text())
    content["companions"] = {"ood": [str(folder / "near.yaml"), str(folder / "gone.yaml")]}
    (folder / "task.yaml").write_text(yaml.safe_dump(content))
    return World(world.model, folder / "task.yaml")


def test_a_bias_stage_keeps_log_probs_and_says_how_good_it_is(
    world: World, store: Store, tmp_path: Path
) -> None:
    world = with_companion(world, tmp_path)
    ref = data(world)
    folder = finished(store, bias_stage({"method": "shallow", "folds": 3}, ref))
    split = ref.load()
    log_probs = read(folder, split)
    assert log_probs.shape == (192, 2)
    assert log_probs.dtype == torch.float32
    found = json.loads((folder / DESCRIPTION).read_bytes())["accuracy"]
    assert found["train"]["value"] == (log_probs.argmax(1).numpy() == split.labels).mean()
    assert found["validation"]["value"] > 0.8
    assert found[str(tmp_path / "near.yaml")] == {"value": 1.0, "stderr": 0.0, "n": 2, "method": "binomial"}
    assert "no file for gone/validation" in found[str(tmp_path / "gone.yaml")]["missing"]


def test_mixed_rows_follow_and_are_uniform(world: World, store: Store, tmp_path: Path) -> None:
    world = with_companion(world, tmp_path)
    ref = data(world, limit=100, mix=(Mixed(on=str(tmp_path / "near.yaml"), times=3),))
    folder = finished(store, bias_stage({"method": "shallow", "folds": 3}, ref))
    log_probs = read(folder, ref.load())
    assert log_probs.shape == (106, 2)
    torch.testing.assert_close(log_probs[100:], torch.full((6, 2), 0.5).log())
    plain = read(finished(store, bias_stage({"method": "shallow", "folds": 3}, data(world, limit=100))))
    assert torch.equal(log_probs[:100], plain)
    assert json.loads((folder / DESCRIPTION).read_bytes())["mixed"] == 6


def test_the_synthetic_bias_shows_on_every_form_of_the_split(world: World, store: Store) -> None:
    ref = data(world, synthetic_bias=SyntheticBias(share=1, right=0.9))
    found = json.loads(
        (finished(store, bias_stage({"method": "synthetic"}, ref)) / DESCRIPTION).read_bytes()
    )["accuracy"]
    assert found["validation"]["value"] > 0.75
    assert found["validation+anti"]["value"] == 0
    assert 0.3 < found["validation+plain"]["value"] < 0.7


def test_a_file_is_named_by_its_content(world: World, store: Store, tmp_path: Path) -> None:
    ref = data(world)
    split = ref.load()
    rows = {identity: np.log([0.25, 0.75]).tolist() for identity in split.ids}
    stages = []
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps(rows))
        stages.append(bias_stage({"method": "file", "path": str(tmp_path / name)}, ref))
    assert stages[0].key == stages[1].key
    folder = finished(store, stages[0])
    torch.testing.assert_close(read(folder).exp(), torch.tensor([[0.25, 0.75]]).expand(192, 2))
    assert list(json.loads((folder / DESCRIPTION).read_bytes())["accuracy"]) == ["train"]
    (tmp_path / "two.json").write_text(json.dumps(rows | {"spare": [0, 0]}))
    assert bias_stage({"method": "file", "path": str(tmp_path / "two.json")}, ref).key != stages[0].key
    with pytest.raises(DataError, match=r"bias\.path: there is no file"):
        bias_stage({"method": "file", "path": "nowhere.npy"}, ref)


def trained(world: World) -> Train:
    return Train(
        model=ModelSource.find(str(world.model)),
        data=data(world),
        train=TrainSettings(steps=2, max_length=16),
        seed=1,
        precision="fp32",
    )


def test_a_teacher_gives_the_softmax_of_its_plain_logits(world: World, store: Store) -> None:
    model = trained(world)
    stage = Teacher(model=model, data=data(world), max_length=16, precision="fp32")
    execute([stage], store)
    folder = store.open(model)
    task, tokenizer = Task.named(str(world.task)), load_tokenizer(folder)
    split = data(world).load()
    logits = predict(
        load_model(folder, task, seed=0), encode(split, tokenizer, 16), collate_of(task, tokenizer)
    )
    probs = store.read(stage)
    torch.testing.assert_close(probs, torch.from_numpy(logits).softmax(1))
    torch.testing.assert_close(probs.sum(1), torch.ones(192))


def test_an_evaluation_warns_of_what_it_was_trained_on(
    world: World, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train = data(world).load()
    copied = [f"{train.texts[i][0].upper()} .\t{('negative', 'positive')[train.labels[i]]}" for i in range(5)]
    (tmp_path / "leaky.tsv").write_text("\n".join(["sentence\tlabel", *copied, "zebra\tnegative"]) + "\n")
    content = yaml.safe_load(world.task.read_text())
    leaky = {**content, "name": "leaky", "source": {"files": {"validation": "leaky.tsv"}}}
    (tmp_path / "leaky.yaml").write_text(yaml.safe_dump(leaky))
    stage = Evaluate(
        model=trained(world),
        trained=data(world),
        data=DataSource.find(str(tmp_path / "leaky.yaml"), "validation"),
        max_length=16,
        precision="fp32",
    )
    with caplog.at_level(logging.WARNING):
        execute([stage], store)
    sentence = "5 of 6 examples of leaky/validation also occur in the training data (tiny/train)."
    assert sentence in caplog.messages
    assert store.read(stage).notes == [sentence]
    assert list(store.read(stage).scores) == ["accuracy", "mcc"]


def test_data_is_fingerprinted_by_what_is_in_it(world: World) -> None:
    bias = SyntheticBias()
    prints = {
        data(world).fingerprint,
        data(world, synthetic_bias=bias).fingerprint,
        data(world, synthetic_bias=SyntheticBias(seed=1)).fingerprint,
        data(world, mix=(Mixed(on="other"),)).fingerprint,
        data(world, mix=(Mixed(on="other", times=2),)).fingerprint,
    }
    assert len(prints) == 5
    plain, unbiased = data(world, "validation+plain", synthetic_bias=bias), data(world, "validation")
    assert plain.fingerprint == unbiased.fingerprint
    with run_cache():
        assert plain.load() is replace(plain).load()
        assert plain.load() is not unbiased.load()


def test_own_data_mixed_in_is_biased_like_every_split(world: World) -> None:
    bias = SyntheticBias(share=1, right=1)
    mixed = {form: plans(world, data={"synthetic_bias": bias.model_dump(), "mix": [{"on": f"train{form}"}]})
             for form in ("", "+anti", "+plain")}  # fmt: skip
    for form, (plan,) in mixed.items():
        split = plan.model.data.load()
        count = len(split) // 2
        other = data(world, f"train{form}", synthetic_bias=bias).load()
        assert split.texts[:count] == data(world, synthetic_bias=bias).load().texts
        assert (split.texts[count:], split.labels[count:]) == (other.texts, other.labels)


def test_targets_by_form_and_companion(world: World) -> None:
    assert find_target("validation+anti", str(world.task)) == (str(world.task), "validation+anti")
    assert find_target("advglue", "sst2") == ("advglue_sst2", "validation")
    assert find_target("hans/train", "mnli") == ("hans", "train")
    assert all_targets(["validation", "ood", "hans", "adversarial"], "mnli") == [
        "validation",
        "hans",
        "advglue_mnli",
        "advglue_mnli_mm",
    ]
    with pytest.raises(RecipeError, match=r"'validation\+anti' exists only with data\.synthetic_bias"):
        data(world, "validation+anti")


def test_examples_without_a_prediction_are_left_out_of_all_training(
    world: World, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    split = data(world).load()
    known = {
        identity: np.log([0.9, 0.1] if label == 0 else [0.1, 0.9]).tolist()
        for identity, label in list(zip(split.ids, split.labels, strict=True))[:150]
    }
    path = tmp_path / "bias.json"
    path.write_text(json.dumps(known))
    bias = {"method": "file", "path": str(path)}
    poe = {"epochs": 1, "batch_size": 16, "max_length": 16, "loss": {"kind": "poe"}}
    (whole,) = plans(world, bias={**bias, "missing": "uniform"}, train=poe)
    (part,) = plans(world, bias={**bias, "missing": "drop"}, train=poe)
    (plain,) = plans(
        world, bias={**bias, "missing": "drop"}, train={**poe, "loss": {"kind": "cross_entropy"}}
    )
    assert "excludes 42 of the 192 training examples" in caplog.text
    assert isinstance(part.model, Train)
    assert isinstance(plain.model, Train)
    assert plain.model.data == part.model.data  # cross-entropy sees the same examples
    assert (whole.model.training_steps(), part.model.training_steps()) == (12, 10)
    execute(part.ends(), store)
    assert store.read(part.model).log.steps == 10
    assert read(store.open(part.model.bias), part.model.data.load()).shape == (150, 2)


@pytest.mark.parametrize("kind", ["poe", "reweighting", "confidence"])
@pytest.mark.parametrize("place", ["train", "search.train"])
def test_every_round_of_imp_trains_with_the_debiasing_loss(
    world: World, store: Store, kind: str, place: str
) -> None:
    """Regression: the released IMP silently takes cross-entropy."""
    train = {"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}
    loss = {"loss": {"kind": kind}}
    debiased: dict[str, Any] = {
        "bias": {"method": "shallow", "examples": None},
        "train": {**train, **loss} if place == "train" else train,
        "search": {
            "method": "iterative",
            "step": 0.25,
            **({"train": loss} if place == "search.train" else {}),
        },
        "draw": {"sparsity": 0.5, "scope": "local"},
    }
    (plan,) = plans(world, **debiased)
    second, first = plan.mask, plan.mask.within
    for draw in (first, second):
        assert draw.of.train.loss.kind == kind
        assert draw.of.bias is not None
        assert (draw.of.teacher is not None) == (kind == "confidence")
    (plain,) = plans(world, **{**debiased, "train": train, "search": {"method": "iterative", "step": 0.25}})
    execute([second, plain.mask], store)
    trained = load_model(store.open(second.of), Task.named(str(world.task)), seed=0)
    found = Mask.load(store.open(second) / MASK)
    before = Mask.load(store.open(first) / MASK)
    for name, weight in Units.of(trained, "weight").matrices(trained).items():
        kept = found[name.removesuffix(".weight")]
        assert int((~kept).sum()) == round(0.5 * kept.numel())
        assert not (kept & ~before[name.removesuffix(".weight")]).any()
        assert weight.abs()[kept].min() >= weight.abs()[~kept].max()
    assert found != Mask.load(store.open(plain.mask) / MASK)
