"""Tagged sentences and texts with several labels all the way: train, search, draw, evaluate, shrink, export."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file

import tombola
from tests.pipeline.running import execute, plans
from tests.tiny import tiny
from tests.words import word_tokenizer
from tests.world import World
from tombola.errors import RecipeError
from tombola.evaluation.evaluate import predict_split
from tombola.masks import Mask
from tombola.models.loading import load_tokenizer, open_model
from tombola.pipeline.planner import CellPlan
from tombola.search import Evidence
from tombola.search.importance import Importance, importance
from tombola.shrink.onnx import export_onnx
from tombola.store.store import Store
from tombola.tasks import Task, collate_of, encode, unlabelled
from tombola.tickets.shrinking import shrink_ticket
from tombola.training.batches import ordered_batches

PEOPLE, PLACES = (["anna", "bela"], ["smith", "jones"]), (["oslo", "new"], ["york", "town"])
PLAIN = ["went", "to", "saw", "the", "old", "house", "of"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
KINDS = ["token-classification", "multi-label"]


def sentences(count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Plain words with a person, a place, both or neither among them, each of one word or two."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        words: list[str] = []
        tags: list[str] = []
        for type_, names in (("PER", PEOPLE), ("LOC", PLACES)):
            words += rng.choice(PLAIN, size=rng.integers(1, 3)).tolist()
            tags += ["O"] * (len(words) - len(tags))
            length = int(rng.integers(3))
            words += [str(rng.choice(part)) for part in names[:length]]
            tags += [f"{prefix}-{type_}" for prefix in "BI"[:length]]
        rows.append((words, tags))
    return rows


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    folder = tmp_path_factory.mktemp("kinds")
    tokenizer = word_tokenizer([" ".join(words) for words in (*PEOPLE, *PLACES, PLAIN)])
    tiny("bert", "base", vocab_size=len(tokenizer)).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    for split, count, seed in (("train", 192, 0), ("validation", 64, 1)):
        rows = sentences(count, seed)
        lines = ["".join(f"{word} {tag}\n" for word, tag in zip(*row, strict=True)) for row in rows]
        (folder / f"{split}.conll").write_text("\n".join(lines))
        named = []
        for words, tags in rows:
            first = {tag[2:]: word for word, tag in zip(words, tags, strict=True) if tag.startswith("B-")}
            named.append({"text": " ".join([words[0], *first.values()]), "labels": list(first)})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    made = {}
    shapes: dict[str, dict[str, Any]] = {
        "token-classification": {
            "text": "tokens",
            "labels": TAGS,
            "metrics": ["entity_f1", "token_accuracy"],
        },
        "multi-label": {
            "text": "text",
            "labels": ["PER", "LOC"],
            "metrics": ["micro_f1", "macro_f1", "subset_accuracy"],
        },
    }
    for kind, ending in zip(KINDS, ("conll", "jsonl"), strict=True):
        files = {split: f"{split}.{ending}" for split in ("train", "validation")}
        task = {"name": kind, "version": 1, "kind": kind, **shapes[kind], "source": {"files": files}}
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(task))
        made[kind] = World(folder / "model", folder / f"{kind}.yaml")
    return made


TRAINING = {"epochs": 20, "learning_rate": 4e-3, "batch_size": 16, "max_length": 16, "dropout": 0.0}
SEARCHES: dict[str, dict[str, Any]] = {
    "importance": {"search": {"method": "importance"}, "draw": {"sparsity": 0.25}},
    "gates": {
        "search": {
            "method": "learned",
            "gate": {"kind": "hard_concrete"},
            "train": {"steps": 12},
        },
        "draw": {"sparsity": 0.3},
    },
}


def finished(world: World, store: Store, **changes: Any) -> CellPlan:
    (plan,) = plans(world, **{"train": TRAINING, **changes})
    execute(plan.ends(), store)
    return plan


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The trainings that tests share."""
    return Store(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", ["importance", pytest.param("gates", marks=pytest.mark.thorough)])
def test_a_ticket_learns_the_task(worlds: dict[str, World], store: Store, kind: str, search: str) -> None:
    plan = finished(worlds[kind], store, **SEARCHES[search])
    stage = plan.evaluations["validation"]
    scores = store.read(stage).scores
    assert list(scores) == Task.named(str(worlds[kind].task)).metrics
    headline = next(iter(scores.values()))
    constant = store.read(stage).constant
    assert constant is not None
    assert headline.value > constant + 3 * headline.stderr
    kept = load_file(store.open(stage) / "predictions.safetensors")
    assert set(kept) == {"predictions"}
    assert plan.mask is not None
    mask = Mask.load(store.open(plan.mask) / "mask.safetensors")
    assert mask.removed > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_ticket_is_shrunk(worlds: dict[str, World], store: Store, tmp_path: Path, kind: str) -> None:
    plan = finished(worlds[kind], store, **SEARCHES["importance"])
    ticket = store.open(plan.model)
    shrinkage = shrink_ticket(ticket, tmp_path / "small", multiple=1, batch_sizes=(1,), length=16)
    assert shrinkage.after.parameters < shrinkage.before.parameters
    assert shrinkage.max_difference < 1e-5
    small, tokenizer, task = (
        open_model(tmp_path / "small"),
        load_tokenizer(ticket),
        Task.named(str(worlds[kind].task)),
    )
    split = task.load("validation")
    before = [
        one.label
        for one in predict_split(
            open_model(ticket), tokenizer, unlabelled(task, [text for (text,) in split.texts])
        )
    ]
    assert before == [one.label for one in predict_split(small, tokenizer, split)]
    kept = load_file(store.open(plan.evaluations["validation"]) / "predictions.safetensors")["predictions"]
    names = task.labels or []
    if kind == "multi-label":
        assert before == [
            tuple(name for name, logit in zip(names, row, strict=True) if logit > 0) for row in kept
        ]
    else:
        assert [tag for tags in before for tag in tags] == [names[number] for number in kept[:, 1]]  # type: ignore


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_shrunk_ticket_is_exported(
    worlds: dict[str, World], store: Store, tmp_path: Path, kind: str
) -> None:
    pytest.importorskip("onnxruntime")
    ticket = store.open(finished(worlds[kind], store, **SEARCHES["importance"]).model)
    shrink_ticket(ticket, tmp_path / "small", multiple=1, batch_sizes=(1,), length=16)
    export = export_onnx(tmp_path / "small", tmp_path / "small.onnx", int8=True)
    assert export.max_difference < 1e-4
    assert export.int8 is not None
    assert export.int8.agreement > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_part_in_importance(worlds: dict[str, World], kind: str) -> None:
    task = Task.named(str(worlds[kind].task))
    split, tokenizer = task.load("train", limit=24), load_tokenizer(worlds[kind].model)
    head = "token-classification" if kind == "token-classification" else "sequence-classification"
    model = tiny("bert", head, vocab_size=len(tokenizer), num_labels=task.num_labels)
    data, collate = encode(split, tokenizer, 16), collate_of(task, tokenizer)
    settings = Importance(units="head")

    def scores(extra: int) -> dict[str, torch.Tensor]:
        def batches(count: int | None) -> Any:
            for batch in ordered_batches(data, collate, size=8, seed=0, count=count):
                fill = {"labels": -100} if batch["labels"].shape == batch["input_ids"].shape else {}
                fill |= dict.fromkeys(("input_ids", "token_type_ids", "attention_mask"), 0)
                yield {
                    name: torch.nn.functional.pad(values, (0, extra), value=fill[name])
                    if name in fill
                    else values
                    for name, values in batch.items()
                }

        return dict(importance(settings, model, settings.units_of(model), Evidence(0, batches)).items())

    plain, padded = scores(0), scores(3)
    for name, values in plain.items():
        torch.testing.assert_close(values, padded[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_apply_says_so_before_anything_runs(worlds: dict[str, World], kind: str) -> None:
    with pytest.raises(
        RecipeError, match=rf"attack: {kind} is a {kind} task, but attacks need a task with one label"
    ):
        plans(worlds[kind], attack={"recipes": ["deepwordbug"]})
    with pytest.raises(
        RecipeError, match=rf"loss: poe needs a task with one label per text, but {kind} is a {kind}"
    ):
        plans(worlds[kind], train={**TRAINING, "loss": {"kind": "poe"}}, bias={"method": "lexical_overlap"})
    with pytest.raises(
        RecipeError, match=r"data\.synthetic_bias: only works for tasks with one label per text"
    ):
        plans(worlds[kind], data={"synthetic_bias": {}})


@pytest.mark.parametrize("kind", KINDS)
def test_r_drop_and_adversarial_training(worlds: dict[str, World], tmp_path: Path, kind: str) -> None:
    training = {
        **TRAINING,
        "dropout": 0.1,
        "steps": 4,
        "r_drop": 1.0,
        "adversary": {"kind": "freelb", "steps": 2},
    }
    plan = finished(worlds[kind], Store(tmp_path), train=training)
    log = Store(tmp_path).read(plan.model).log
    assert log.steps == 4
    assert all(np.isfinite(point.loss) for point in log.curve)


def test_a_ticket_is_opened_with_the_task_settings_of_its_recipe(
    worlds: dict[str, World], store: Store, tmp_path: Path
) -> None:
    """With a threshold that low every label is predicted, in the run and by evaluate and predict alike."""
    world = worlds["multi-label"]
    raw = world.recipe(
        train={**TRAINING, "epochs": 1},
        search={"method": "magnitude"},
        data={"task_settings": {"threshold": 0.001}},
    )
    result = tombola.run(raw, output=tmp_path / "out", store=store)
    (cell,) = result.cells
    ticket = result.folder / str(cell.ticket)
    assert tombola.evaluate(ticket)["validation"] == cell.scores["validation"]
    assert [one.label for one in tombola.predict(ticket, ["the house"])] == [("PER", "LOC")]


def test_a_step_is_chosen_anew_by_another_threshold(worlds: dict[str, World]) -> None:
    changes = {"evaluate": {"on": [], "best": "holdout"}}
    keys = [
        plans(worlds["multi-label"], data={"holdout": 0.2, "task_settings": settings}, **changes)[0].model.key
        for settings in ({}, {"threshold": 0.5}, {"threshold": 0.2})
    ]
    assert keys[0] == keys[1] != keys[2]
