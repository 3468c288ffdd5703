"""Texts without labels in a compression: the original labels them, and the ticket is trained on them."""

import gzip
import json
from pathlib import Path

import pytest

import tombola
from tests.world import World, sentences, tagged_task
from tombola.api.compressing import plan_order
from tombola.api.orders import Order, plan_compression
from tombola.api.unlabelled import label_stage, texts_to_label
from tombola.errors import TombolaError
from tombola.pipeline.runner import run_plan
from tombola.pipeline.stages.label import ROWS, TASK
from tombola.pipeline.stages.train import Train
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.tasks.without_labels import new_texts

SETTINGS = ("train={epochs: 8, learning_rate: 3.0e-3, batch_size: 16, max_length: 16}", "retrain.epochs=2")


@pytest.fixture(scope="module")
def classifier(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    recipe = world.recipe(evaluate={"on": []})
    tombola.run(recipe, output=folder / "run", store=folder / "store")
    return next((folder / "store" / "train").glob("*/config.json")).parent


def known(world: World) -> list[str]:
    return [text for text, _ in sentences(192, seed=0)]


@pytest.fixture(scope="module")
def texts(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty new texts, one of them twice, and two of the training data in other writings."""
    path = tmp_path_factory.mktemp("texts") / "more.txt"
    old = {tuple(text.split()) for seed in range(3) for text, _ in sentences(192, seed=seed)}
    new = [text for text, _ in dict.fromkeys(sentences(400, seed=9)) if tuple(text.split()) not in old][:60]
    again = [text.upper() + "!" for text in known(world)[:2]]
    path.write_text("\n".join([*new, new[0], *again]) + "\n")
    return path


def raw_of(world: World, model: Path) -> dict:
    return {"model": str(model), "task": str(world.task), "train": {"max_length": 16}}


def test_what_the_data_has_already_is_left_out(world: World, texts: Path) -> None:
    found = texts_to_label(raw_of(world, world.model), str(texts))
    assert len(found) == 60
    assert not {text for (text,) in found.texts} & set(known(world))


def test_lines_are_refused_where_pairs_are_read(texts: Path) -> None:
    with pytest.raises(TombolaError, match=r"more\.txt: a \.txt file has one text per line, but rte reads"):
        new_texts(Task.named("rte"), texts, ())


def test_lines_are_read_from_files_that_are_named_otherwise_or_compressed(
    world: World, texts: Path, tmp_path: Path
) -> None:
    raw, content = raw_of(world, world.model), texts.read_bytes()
    (tmp_path / "MORE.TXT").write_bytes(content)
    (tmp_path / "more.txt.gz").write_bytes(gzip.compress(content))
    expected = texts_to_label(raw, str(texts)).texts
    for name in ("MORE.TXT", "more.txt.gz"):
        assert texts_to_label(raw, str(tmp_path / name)).texts == expected


def test_the_original_labels_them(world: World, classifier: Path, texts: Path, tmp_path: Path) -> None:
    stage = label_stage(raw_of(world, classifier), str(texts))
    store = Store(tmp_path)
    run_plan([stage], store, tmp_path / "result.json")
    folder = store.open(stage)
    rows = [json.loads(line) for line in (folder / ROWS).read_text().splitlines()]
    answers = tombola.predict(classifier, [row["sentence"] for row in rows], task=str(world.task))
    assert [row["label"] for row in rows] == [answer.label for answer in answers]
    assert {row["label"] for row in rows} == {"negative", "positive"}
    assert len(Task.from_file(stage.read(folder)).load("train")) == 60


def test_the_ticket_is_trained_on_them_and_the_original_is_not(world: World, texts: Path) -> None:
    order = Order(str(world.model), str(world.task), unlabelled=str(texts), overrides=SETTINGS)
    raw, notes = plan_compression(order)
    assert any("not in the data: 60" in note for note in notes)
    assert "mix" not in raw.get("data", {})  # the original is fine-tuned by this recipe
    plan, _ = plan_order(order)
    trained = {
        stage.label: stage for stage in plan.stages if isinstance(stage, Train) and stage.training_steps()
    }
    sizes = {label: len(stage.data.load()) for label, stage in trained.items()}
    assert sizes == {"fine-tune": 192, "train the small model": 192 + 60}


def test_mistakes(world: World, texts: Path, tmp_path: Path) -> None:
    order = Order(str(world.model), str(world.task), unlabelled=str(tmp_path / "none.csv"))
    with pytest.raises(TombolaError, match=r"--unlabelled: there is no file .*none\.csv"):
        plan_compression(order)
    (tmp_path / "old.txt").write_text("\n".join(known(world)))
    with pytest.raises(TombolaError, match="every text is already in the data of"):
        texts_to_label(raw_of(world, world.model), str(tmp_path / "old.txt"))
    with pytest.raises(
        TombolaError, match=r"needs a task with one label per text, but tags is a token-classification task"
    ):
        texts_to_label({"task": str(tagged_task(tmp_path))}, str(texts))


@pytest.mark.thorough
def test_a_compression_with_unlabelled_texts_goes_through(
    world: World, classifier: Path, texts: Path, tmp_path: Path
) -> None:
    found = tombola.compress(
        classifier,
        world.task,
        speedup=None,
        parameters=0.8,
        batch_size=(1,),
        unlabelled=texts,
        overrides=(*SETTINGS, "precision=fp32", "attack=null", "search.batches=2", "draw.multiple=1"),
        output=tmp_path / "out",
        store=tmp_path / "store",
    )
    mixed = [cell.recipe["data"]["mix"] for cell in found.result.cells if cell.variant == "ticket"]
    assert mixed
    assert all(one["on"].endswith(f"{TASK}/train") for mix in mixed for one in mix)
