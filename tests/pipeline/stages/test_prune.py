"""Searches by calibration in the pipeline: masks, weights, patterns, and what ships."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import tombola
from tests.masks.small import follows
from tests.pipeline.running import execute, plans, workspace
from tests.world import World, make_world
from tombola.masks import Mask, Units, draw
from tombola.masks.patterns import parse_pattern
from tombola.pipeline.planner import CellPlan, training_data
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.prune import Prune
from tombola.pipeline.stages.score import first_examples, scored_model
from tombola.search.wanda import Wanda, wanda
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.tickets.ticket import Ticket

pytestmark = pytest.mark.portable

TRAIN = {"steps": 4, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}
FEW = {"examples": 12, "batch_size": 5}


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("decoder"), "llama")


def planned(world: World, method: str, **changes: Any) -> CellPlan:
    search = {"method": method, "calibration": FEW, **changes.pop("search", {})}
    (plan,) = plans(world, **{"train": TRAIN, "retrain": None, "search": search, **changes})
    return plan


def mask_of(plan: CellPlan, store: Store) -> Mask:
    assert plan.mask is not None
    return plan.mask.load(workspace(store))


@pytest.mark.parametrize("method", ["wanda", "ria", "sparsegpt"])
@pytest.mark.parametrize("draw_settings", [{"sparsity": 0.3}, {"pattern": "2:4"}, {"pattern": "4x4"}])
def test_every_method_prunes_a_decoder_and_an_encoder_exactly(
    world: World, decoder: World, tmp_path: Path, method: str, draw_settings: dict[str, Any]
) -> None:
    for own in (world, decoder):
        plan = planned(own, method, draw=draw_settings)
        store = Store(tmp_path / own.model.parent.name)
        execute(plan.ends(), store)
        mask = mask_of(plan, store)
        if "pattern" in draw_settings:
            pattern = parse_pattern(draw_settings["pattern"])
            assert mask.sparsity == 0.5
            assert all(follows(mask[group.name], pattern) for group in mask.units.groups)
            continue
        for group in mask.units.groups:
            outputs, inputs = group.shape
            lost = int((0.3 * inputs + 0.5) // 1) * outputs if method != "sparsegpt" else None
            expected = lost if lost is not None else int((0.3 * outputs * inputs + 0.5) // 1)
            assert int((~mask[group.name]).sum()) == expected


def test_the_weights_of_sparsegpt_ship_where_nothing_is_retrained(world: World, tmp_path: Path) -> None:
    recipe = world.recipe(
        train=TRAIN,
        retrain=None,
        search={"method": "sparsegpt", "calibration": FEW},
        draw={"pattern": "2:4"},
    )
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    (plan,) = plans(world, **{key: recipe[key] for key in ("train", "retrain", "search", "draw")})
    store = Store(tmp_path / "store")
    assert isinstance(plan.model, Prune)
    updated = plan.model.load(workspace(store), Task.named(str(world.task)))
    (folder,) = (tmp_path / "out" / "tickets").iterdir()
    ticket = Ticket.from_pretrained(folder)
    plain = AutoModelForSequenceClassification.from_pretrained(folder)
    assert plan.model.of is not None
    dense = plan.model.of.load(workspace(store), Task.named(str(world.task)))
    for name, kept in ticket.mask.tensors(plain).items():
        shipped, made, before = (model.base_model.get_parameter(name) for model in (plain, updated, dense))
        assert torch.equal(shipped, made)
        assert torch.equal(shipped != 0, kept)
        assert not torch.equal(shipped[kept], before[kept])
    assert result.cells[0].mask is not None
    assert result.cells[0].mask.sparsity == 0.5


def test_retraining_starts_from_the_weights_of_sparsegpt_where_asked(world: World, tmp_path: Path) -> None:
    short = {**TRAIN, "steps": 1}
    plan = planned(world, "sparsegpt", draw={"pattern": "2:4"}, retrain={"start": "searched", **short})
    assert isinstance(plan.model.inputs["start"], Prune)
    store = Store(tmp_path)
    execute(plan.ends(), store)
    mask = mask_of(plan, store)
    model = plan.model.load(workspace(store), Task.named(str(world.task)))  # type: ignore[union-attr]
    assert all(
        not model.base_model.get_parameter(name)[~kept].any() for name, kept in mask.tensors(model).items()
    )


def test_in_order_layers_answer_to_the_pruned_ones_and_dense_scores_serve_every_sparsity(
    world: World, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    dense = {"search": {"sequential": False}}
    some, more = (planned(world, "wanda", draw={"sparsity": share}, **dense) for share in (0.25, 0.5))
    in_order = planned(world, "wanda", draw={"sparsity": 0.5})
    for plan in (some, more, in_order):
        execute(plan.ends(), store)
    assert isinstance(some.mask, Draw)
    assert isinstance(more.mask, Draw)
    assert some.mask.scores is not None
    assert some.mask.scores.key == more.mask.scores.key  # type: ignore[union-attr]
    assert mask_of(some, store).contains(mask_of(more, store))
    one, other = mask_of(more, store), mask_of(in_order, store)
    first = [group.name for group in one.units.groups if group.layer == 0]
    last = [group.name for group in one.units.groups if group.layer == 1]
    assert all(torch.equal(one[name], other[name]) for name in first)
    assert not all(torch.equal(one[name], other[name]) for name in last)


def test_dense_scores_are_those_of_the_training_examples(world: World, tmp_path: Path) -> None:
    plan = planned(world, "wanda", search={"sequential": False}, draw={"sparsity": 0.5})
    store = Store(tmp_path)
    execute(plan.ends(), store)
    assert isinstance(plan.mask, Draw)
    score = plan.mask.scores
    assert score is not None
    task = Task.named(str(world.task))
    model, units, evidence = scored_model(score, workspace(store), score.model.load(task, 1))  # type: ignore[attr-defined, arg-type]
    assert sum(len(batch["input_ids"]) for batch in evidence.examples(12, 5)) == 12
    assert [len(batch["input_ids"]) for batch in evidence.examples(12, 5)] == [5, 5, 2]
    again = wanda(Wanda(calibration=FEW), model, units, evidence)  # type: ignore[arg-type]
    assert draw(again, 0.5, scope="row") == mask_of(plan, store)


def test_fewer_examples_than_asked_for_are_taken_once(world: World) -> None:
    batches = [{"input_ids": torch.zeros(size, 3), "labels": torch.zeros(size)} for size in (4, 4, 2)]
    assert sum(len(batch["labels"]) for batch in first_examples(iter(batches), 64)) == 10
    assert [len(batch["labels"]) for batch in first_examples(iter(batches), 4)] == [4]


@pytest.mark.parametrize("pattern", ["2:4", "4x4"])
@pytest.mark.parametrize(
    "search",
    [
        {"method": "magnitude"},
        {"method": "random"},
        {"method": "grasp", "batches": 1},
        {"method": "wanda", "sequential": False, "calibration": FEW},
        {"method": "learned", "train": {"steps": 2}},
        {"method": "learned", "train": {"steps": 2}, "gate": {"kind": "threshold"}},
        {"method": "learned", "train": {"steps": 2}, "gate": {"kind": "sign"}},
        {"method": "learned", "train": {"steps": 2}, "gate": {"kind": "bernoulli"}},
    ],
    ids=["magnitude", "random", "grasp", "wanda", "hard concrete", "threshold", "sign", "bernoulli"],
)
def test_every_score_and_every_gate_can_be_drawn_in_a_pattern(
    world: World, tmp_path: Path, search: dict[str, Any], pattern: str
) -> None:
    (plan,) = plans(
        world, train={**TRAIN, "steps": 1}, retrain=None, search=search, draw={"pattern": pattern}
    )
    store = Store(tmp_path)
    execute([plan.mask], store)  # type: ignore[list-item]
    mask = mask_of(plan, store)
    assert mask.sparsity == 0.5
    assert all(follows(mask[group.name], parse_pattern(pattern)) for group in mask.units.groups)


def test_block_influence_removes_whole_layers(world: World, tmp_path: Path) -> None:
    plan = planned(world, "block_influence", draw={"sparsity": 0.5})
    store = Store(tmp_path)
    execute(plan.ends(), store)
    mask = mask_of(plan, store)
    assert mask.units.granularity == "layer"
    assert mask.removed == 1
    assert isinstance(plan.mask, Draw)
    scores = store.read(plan.mask.scores)  # type: ignore[type-var]
    low, high = sorted(scores, key=lambda name: scores[name].item())
    assert not mask[low].any()
    assert mask[high].all()


def test_what_a_ticket_was_calibrated_on_counts_as_seen(world: World) -> None:
    for method in ("wanda", "sparsegpt"):
        plan = planned(world, method, search={"start": "pretrained"}, draw={"sparsity": 0.5})
        assert plan.mask is not None
        assert [data.split for data in training_data(plan.mask)] == ["train"]


def test_a_pattern_that_does_not_fit_the_model_is_refused_before_anything_runs(world: World) -> None:
    with pytest.raises(tombola.TombolaError, match=r"draw\.pattern 2:5: .* has 16 inputs"):
        planned(world, "wanda", draw={"pattern": "2:5"})
    with pytest.raises(tombola.TombolaError, match=r"draw\.pattern 5x4: .* are not multiples"):
        plans(world, search={"method": "magnitude"}, draw={"pattern": "5x4"})


def test_units_of_the_plain_model_fit_the_mask(world: World, tmp_path: Path) -> None:
    plan = planned(world, "sparsegpt", draw={"sparsity": 0.5})
    store = Store(tmp_path)
    execute(plan.ends(), store)
    model = plan.model.load(workspace(store), Task.named(str(world.task)))  # type: ignore[union-attr]
    assert mask_of(plan, store).units.same_as(Units.of(model, "weight"))
