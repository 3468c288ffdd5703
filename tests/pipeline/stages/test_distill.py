"""Distillation in recipes: which model teaches, what the keys say, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.pipeline.running import execute, plans, workspace
from tests.tiny import tiny
from tests.words import word_tokenizer
from tests.world import World
from tombola.api.original import is_finetuned
from tombola.errors import ModelError, RecipeError
from tombola.pipeline.references import ModelSource
from tombola.pipeline.stages.learning import distilling_teacher
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.train import Train
from tombola.recipe.grid import expand
from tombola.store.store import Store
from tombola.tasks import Task

IMPORTANCE = {"method": "importance"}


def retrained(world: World, **distill: object) -> Train:
    (plan,) = plans(world, search=IMPORTANCE, retrain={"distill": distill})
    assert isinstance(plan.model, Train)
    return plan.model


def test_by_default_the_plain_fine_tuning_teaches(world: World) -> None:
    train = {**world.recipe()["train"], "r_drop": 1.0}
    (dense,) = plans(world)
    (plan,) = plans(world, train=train, search=IMPORTANCE, retrain={"distill": {"hidden": 1.0}})
    assert isinstance(plan.model, Train)
    assert plan.model.distill_from.key == dense.model.key
    assert plan.model.train.r_drop == 1.0
    (self_taught,) = plans(world, train={**world.recipe()["train"], "distill": {}})
    assert self_taught.model.distill_from.key == dense.model.key


def test_a_search_learns_from_the_same_teacher(world: World, tmp_path: Path) -> None:
    (dense,) = plans(world)
    train = {"epochs": 1, "distill": {"weight": 1, "hidden": 1}}
    (plan,) = plans(world, search={"method": "learned", "train": train})
    (search,) = [stage for stage in plan.stages() if isinstance(stage, SearchStage)]
    assert search.distill_from.key == dense.model.key
    assert plan.model.distill_from is None
    store = Store(tmp_path)
    execute([search], store)
    assert search.key != replace(search, distill_from=None).key


def test_a_named_teacher_is_known_by_its_content(world: World, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (dense,) = plans(world)
    execute(dense.ends(), store)
    folder = store.open(dense.model)
    copied = tmp_path / "copy"
    copied.mkdir()
    for file in folder.iterdir():
        if file.is_file() and file.name != "stage.json":
            (copied / file.name).write_bytes(file.read_bytes())
    one, other = retrained(world, teacher=str(folder)), retrained(world, teacher=str(copied))
    assert isinstance(one.distill_from, ModelSource)
    assert one.key == other.key != retrained(world).key
    execute([one], store)
    assert store.read(one).log.steps > 0


def test_a_teacher_without_a_head_or_with_other_tokens_is_refused(world: World, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(ModelError, match="no trained head for tiny"):
        retrained(world, teacher=str(world.model)).distill_from.load_finetuned(
            retrained(world).data.definition
        )
    other = tmp_path / "other"
    tokenizer = word_tokenizer(["other words than those of the model"])
    names = {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
    tiny("bert", vocab_size=len(tokenizer), **names).save_pretrained(other)
    tokenizer.save_pretrained(other)
    from tombola.pipeline.stages.learning import distilling_teacher

    with pytest.raises(RecipeError, match="a different vocabulary"):
        distilling_teacher(retrained(world, teacher=str(other)), workspace(store))


@pytest.mark.parametrize("segments", [False, True])
def test_a_teacher_of_pairs_gets_the_segments_that_it_has_learned(tmp_path: Path, segments: bool) -> None:
    """DistilBERT's tokenizer gives none: BERT would read both texts as the first."""
    names = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    for model, gives in (("bert", True), ("distilbert", segments)):
        tokenizer = word_tokenizer(["a good film", "a bad plot"], segments=gives)
        tiny(model, vocab_size=len(tokenizer), **names).save_pretrained(tmp_path / model)
        tokenizer.save_pretrained(tmp_path / model)
    (tmp_path / "train.tsv").write_text("one\ttwo\tlabel\n" + 8 * "a good film\ta bad plot\tno\n")
    task = {"name": "pairs", "version": 1, "text": ["one", "two"], "labels": ["no", "yes"]}
    task |= {"metrics": ["accuracy"], "source": {"files": {"train": "train.tsv"}}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    distill = {"teacher": str(tmp_path / "bert")}
    changes = {"train": {"epochs": 1, "max_length": 16, "distill": distill}, "evaluate": {"on": ["train"]}}
    (plan,) = plans(World(tmp_path / "distilbert", tmp_path / "task.yaml"), **changes)
    store = Store(tmp_path / "store")
    if segments:
        execute([plan.model], store)
        assert store.read(plan.model).log.steps == 1
    else:
        with pytest.raises(RecipeError, match=r"distill\.teacher: .*bert distinguishes the two texts"):
            execute([plan.model], store)


def test_layers_are_one_setting_and_no_grid(world: World) -> None:
    (cell,) = expand(world.recipe(train={"distill": {"layers": [1, 2], "hidden": 1.0}}))
    assert cell.recipe.train.distill.layers == (1, 2)
    with pytest.raises(RecipeError, match=r"distill.weight"):
        expand(world.recipe(train={"distill": {"weight": 2}}))


def test_a_teacher_of_other_labels_is_refused(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "teacher"
    names = {"id2label": {0: "pos", 1: "neg"}, "label2id": {"pos": 0, "neg": 1}}
    tokenizer = ModelSource.find(str(world.model)).tokenizer()
    tiny("bert", vocab_size=len(tokenizer), **names).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    stage = retrained(world, teacher=str(folder))
    with pytest.raises(ModelError, match=r"labels are \['pos', 'neg'\], but those of the task 'tiny' are"):
        distilling_teacher(stage, workspace(Store(tmp_path / "store")))
    assert not is_finetuned(str(world.model), stage.data.definition)
    with pytest.raises(ModelError, match=r"set id2label in the model's config\.json"):
        is_finetuned(str(folder), stage.data.definition)


def test_labels_that_differ_in_signs_alone_are_told_apart(world: World, tmp_path: Path) -> None:
    for split in ("train", "validation", "other"):
        content = world.task.with_name(f"{split}.tsv").read_text()
        (tmp_path / f"{split}.tsv").write_text(content.replace("negative", "-").replace("positive", "+"))
    task = world.task.read_text().replace("- negative\n- positive\n", "- '-'\n- '+'\n")
    (tmp_path / "task.yaml").write_text(task)
    (plan,) = plans(World(world.model, tmp_path / "task.yaml"), data={"mix": [{"on": "other"}]})
    mixed = plan.evaluations["validation"].trained.load()
    assert mixed.labels[-48:] == Task.from_file(tmp_path / "task.yaml").load("other").labels
    execute(plan.ends(), store := Store(tmp_path / "store"))
    assert store.read(plan.evaluations["validation"]).scores["accuracy"].value > 0.6
