"""Exported models: onnxruntime gives PyTorch's outputs, and what a mask removes is cut out of the graph."""

import shutil
from pathlib import Path

import pytest
import torch
import yaml

import tombola
from tests.pipeline.running import execute, plans, workspace
from tests.words import word_tokenizer
from tests.world import BAD, GOOD, PLAIN, World
from tombola.errors import TombolaError
from tombola.foundations.checksums import check_checksums
from tombola.models.loading import load_tokenizer
from tombola.pipeline.stages.export import Exported, ExportStage, Quantise
from tombola.store.store import Store

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BRIEF = {"steps": 2, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One training and one export for all tests."""
    return Store(tmp_path_factory.mktemp("store"))


def test_the_file_gives_the_outputs_of_the_model(world: World, store: Store) -> None:
    (plan,) = plans(world, train=BRIEF, runtime="onnx")
    (stage,) = [one for one in plan.stages() if isinstance(one, ExportStage)]
    assert stage.label == "export the dense model to ONNX"
    execute([stage], store)
    found = store.read(stage)
    assert isinstance(found, Exported)
    assert found.bytes == sum(file.stat().st_size for file in store.open(stage).glob("model.onnx*"))
    assert found.max_difference < 1e-5
    space, task = workspace(store), stage_task(plan)
    model = plan.model.load(space, task).eval()
    inputs = load_tokenizer(store.open(stage))("a very fine film", return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits
    torch.testing.assert_close(stage.load(space, task)(**inputs).logits, expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(TombolaError, match="every_epoch"):
        stage.load(space, task, epoch=1)


def test_eight_bits_take_the_file_and_speed_up_the_dense_one(world: World, store: Store) -> None:
    mask = {"search": {"method": "importance"}, "draw": {"sparsity": 0.5}, "retrain": None}
    (plan,) = plans(world, train=BRIEF, runtime="onnx_int8", measure={"batch_sizes": [1]})
    (cut,) = plans(world, train=BRIEF, runtime="onnx_int8", measure={"batch_sizes": [1]}, **mask)
    assert plan.measured is not None
    assert cut.measured is not None
    exported, quantised = plan.measured.reference, plan.exported
    assert isinstance(quantised, Quantise)
    assert quantised.exported.key == exported.key  # the dense model's own
    assert cut.measured.reference.key == exported.key  # and what its ticket is compared with
    execute([quantised], store)
    assert store.read(quantised).bytes < store.read(exported).bytes
    space = workspace(store)
    assert quantised.file(space).name == "model.int8.onnx"
    inputs = load_tokenizer(store.open(quantised))("a very fine film", return_tensors="pt")
    exact, rough = (stage.load(space, stage_task(plan))(**inputs).logits for stage in (exported, quantised))
    torch.testing.assert_close(rough, exact, atol=0.1, rtol=0.1)
    assert not torch.equal(rough, exact)


def test_companions_are_evaluated_in_onnx_as_in_transformers(
    world: World, store: Store, tmp_path: Path
) -> None:
    task = yaml.safe_load(world.task.read_text())
    for file in task["source"]["files"].values():
        shutil.copy(world.task.with_name(file), tmp_path)
    companion = tmp_path / "companion.yaml"
    companion.write_text(yaml.safe_dump({**task, "name": "turned", "labels": task["labels"][::-1]}))
    on = ["validation", str(companion), "reviews_product/test", "reviews_product/test+typos"]
    recipe = world.recipe(
        train=BRIEF, runtime=["transformers", "onnx"], evaluate={"on": on}, data={"evaluation": 24}
    )
    found = tombola.run(recipe, output=tmp_path / "out", store=store)
    plain, exported = found.cells
    assert (len(plain.scores), exported.recipe["runtime"]) == (4, "onnx")
    assert exported.scores == plain.scores
    assert "rearranged by name" in " ".join(exported.notes)


def test_a_folder_ships_the_file_that_its_scores_belong_to(
    world: World, store: Store, tmp_path: Path
) -> None:
    ticket = {"search": {"method": "importance"}, "draw": {"sparsity": 0.5}, "retrain": None}
    variants = {"dense": {}, "ticket": ticket, "plain": {"runtime": "transformers"}}
    recipe = world.recipe(train=BRIEF, runtime="onnx_int8", variants=variants)
    found = {cell.variant: cell for cell in tombola.run(recipe, output=tmp_path / "out", store=store).cells}
    for variant in ("dense", "ticket"):
        folder = tmp_path / "out" / str(found[variant].ticket or found[variant].model)
        assert (folder / "model.onnx").is_file()
        assert tombola.evaluate(folder / "model.int8.onnx") == found[variant].scores
        assert "scores above are those of `model.int8.onnx`" in (folder / "README.md").read_text()
        check_checksums(folder, "")
    plain = tmp_path / "out" / str(found["plain"].model)
    assert not list(plain.glob("*.onnx"))
    assert "onnx" not in (plain / "README.md").read_text().split("## Recipe")[0]


def stage_task(plan):
    return plan.model.data.definition


def test_the_file_asks_for_what_the_tokenizer_gives(world: World, store: Store, tmp_path: Path) -> None:
    model = Path(shutil.copytree(world.model, tmp_path / "model"))
    word_tokenizer([" ".join(GOOD + BAD + PLAIN)], segments=False).save_pretrained(model)
    (plan,) = plans(World(model, world.task), train=BRIEF, runtime="onnx")
    (stage,) = [one for one in plan.stages() if isinstance(one, ExportStage)]
    execute([stage], store)
    session = stage.load(workspace(store), stage_task(plan)).session
    assert {one.name for one in session.get_inputs()} == {"input_ids", "attention_mask"}
