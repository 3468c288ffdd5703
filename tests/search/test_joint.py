"""Searches that train weights and gates: what the stage leaves, where tickets go on from it, what is refused."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import PreTrainedModel

import tombola
from tests.pipeline.running import execute, plans, workspace
from tests.training.test_resume import Killed
from tests.training.toy import same_weights
from tests.world import World
from tombola.errors import RecipeError
from tombola.evaluation.evaluate import evaluate_split
from tombola.gates import Gating
from tombola.masks import Mask, Scores, Units, fingerprint
from tombola.masks.layout import parameters_of
from tombola.models.heads import copy_base, copy_head
from tombola.models.loading import load_model, load_tokenizer
from tombola.pipeline.planner import CellPlan
from tombola.pipeline.stages.score import read_batches
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.shrink import Shrink
from tombola.recipe.grid import expand
from tombola.search.criteria import unit_scores
from tombola.store.store import Store
from tombola.tasks import Task

TRAIN = {"steps": 4, "learning_rate": 1e-3, "batch_size": 16, "max_length": 16}
JOINT: dict[str, Any] = {
    "method": "learned",
    "units": "head+neuron",
    "weights": True,
    "budget": {"kind": "lagrangian"},
    "train": {"steps": 6},
}


def planned(world: World, **changes: Any) -> CellPlan:
    (plan,) = plans(world, **{"train": TRAIN, "search": JOINT, "draw": {"sparsity": 0.4}, **changes})
    return plan


def search_of(plan: CellPlan) -> SearchStage:
    (stage,) = {one.key: one for one in plan.stages() if isinstance(one, SearchStage)}.values()
    return stage


def test_the_weights_are_trained_at_the_rate_of_the_recipe_unless_it_is_said(world: World) -> None:
    assert search_of(planned(world)).search.weights_learning_rate == 1e-3
    told = search_of(planned(world, search={**JOINT, "weights_learning_rate": 5e-5}))
    assert told.search.weights_learning_rate == 5e-5
    assert told.search.train.learning_rate == 0.1  # the scores', as published
    frozen = search_of(planned(world, search={**JOINT, "weights": False}))
    assert frozen.search.weights_learning_rate is None
    assert len({search_of(planned(world)).key, told.key, frozen.key}) == 3
    assert "weights" not in frozen.identity()["settings"]["search"]


def test_evaluation_reports_the_mask_on_the_searched_weights(world: World, tmp_path: Path) -> None:
    plan, store = planned(world, retrain=None), Store(tmp_path)
    search = search_of(plan)
    assert plan.model is search
    execute(plan.ends(), store)
    task = Task.named(str(world.task))
    model, tuned = load_model(store.open(search), task, 9), load_model(store.open(search.start), task, 9)
    moved = [name for name, one in model.named_parameters() if not one.equal(tuned.get_parameter(name))]
    assert {"classifier.weight", "bert.encoder.layer.0.output.dense.weight"} <= set(moved)
    mask = Mask.load(store.open(plan.mask) / "mask.safetensors")
    mask.check(load_model(world.model, task, seed=1))  # it is one of the pre-trained model
    mask.apply(model)
    evaluate = plan.evaluations["validation"]
    found = evaluate_split(
        model, load_tokenizer(store.open(search)), evaluate.data.load(), max_length=16, precision="fp32"
    )
    assert store.read(evaluate).scores == found.scores
    kept = load_file(store.open(evaluate) / "predictions.safetensors")["predictions"]
    assert torch.equal(kept, torch.from_numpy(found.predictions))


def test_the_ticket_holds_the_searched_weights_under_the_mask(world: World, tmp_path: Path) -> None:
    recipe = world.recipe(train=TRAIN, search=JOINT, draw={"sparsity": 0.4}, retrain=None)
    result = tombola.run(recipe, store=tmp_path / "store", output=tmp_path / "run")
    ticket = tombola.Ticket.from_pretrained(tmp_path / "run" / result.cells[0].ticket)
    folder = Store(tmp_path / "store").open(search_of(planned(world, retrain=None)))
    searched = load_model(folder, Task.named(str(world.task)), 0)
    ticket.mask.apply(searched)
    assert same_weights(ticket.model(), searched)
    assert not (ticket.folder / "scores.safetensors").exists()


def test_the_searched_weights_are_those_that_the_gates_let_through(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were trained under the gates: a half-open gate would be fully open under the mask alone."""
    trained: list[PreTrainedModel] = []
    plain = Gating.fold

    def watch(self: Gating, model: PreTrainedModel) -> None:
        trained.append(deepcopy(model))
        plain(self, model)

    monkeypatch.setattr(Gating, "fold", watch)
    stage, store = search_of(planned(world)), Store(tmp_path)
    execute([stage], store)
    (bare,) = trained
    scores = store.read(stage)
    gates = {name: (1.2 * torch.sigmoid(score) - 0.1).clamp(0, 1) for name, score in scores.items()}
    parameters = parameters_of(bare)
    with torch.no_grad():
        for name, gate in scores.units.spread(gates):
            assert not torch.equal(gate, torch.ones_like(gate))
            parameters[name].mul_(gate)
    saved = load_model(store.open(stage), Task.named(str(world.task)), 0)
    for name, weight in bare.named_parameters():
        assert torch.allclose(weight, saved.get_parameter(name), atol=1e-6), name


@pytest.mark.parametrize("shrink", [False, True])
@pytest.mark.parametrize("start", ["searched", "last_round"])
def test_retraining_goes_on_from_the_searched_weights(
    world: World, tmp_path: Path, start: str, shrink: bool
) -> None:
    plan = planned(world, retrain={"start": start, "shrink": shrink, "epochs": 0, "steps": None})
    store = Store(tmp_path)
    execute([plan.model, *plan.evaluations.values()], store)
    task = Task.named(str(world.task))
    searched = load_model(store.open(search_of(plan)), task, 9)
    mask = Mask.load(store.open(plan.mask) / "mask.safetensors")
    mask.apply(searched)
    ticket = load_model(store.open(plan.model), task, 9)
    if shrink:
        cut = plan.model.inputs["start"]
        assert isinstance(cut, Shrink)
        assert cut.of is search_of(plan)
        assert ticket.num_parameters() < searched.num_parameters()
    else:
        assert same_weights(ticket, searched)
    ids = torch.randint(5, 20, (4, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(ticket(ids).logits, searched(ids).logits, atol=1e-5)


def test_a_small_model_of_equal_layers_is_cut_out_of_the_searched_weights(
    world: World, tmp_path: Path
) -> None:
    plan = planned(
        world,
        search={**JOINT, "budget": {"kind": "l0"}, "init": "importance"},
        draw={"parameters": 0.8, "layout": "uniform", "multiple": 4},
        retrain={"start": "searched", "shrink": True, "steps": 2},
    )
    store = Store(tmp_path)
    execute(plan.ends(), store)
    task = Task.named(str(world.task))
    small, whole = (load_model(store.open(one), task, 9) for one in (plan.model, search_of(plan)))
    assert small.num_parameters() < whole.num_parameters()
    assert len({layer.intermediate.dense.out_features for layer in small.bert.encoder.layer}) == 1


def test_a_killed_search_ends_with_the_same_scores_and_weights(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = {**JOINT, "init": "importance", "train": {"steps": 6, "checkpoint_minutes": 0}}
    stage = search_of(planned(world, search=often))
    whole, killed = Store(tmp_path / "whole"), Store(tmp_path / "killed")
    execute([stage], whole)
    execute([stage.start], killed)
    collect, calls = Gating.collect, []

    def stop(self: Gating, *arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 4:
            raise Killed
        collect(self, *arguments)

    monkeypatch.setattr(Gating, "collect", stop)
    with pytest.raises(Killed):
        execute([stage], killed)
    monkeypatch.undo()
    execute([stage], killed)
    assert '"resumed_from": 3' in (killed.open(stage) / "log.json").read_text()
    for name in ("scores.safetensors", "model.safetensors"):
        assert (whole.open(stage) / name).read_bytes() == (killed.open(stage) / name).read_bytes()


@pytest.mark.parametrize(
    ("gate", "units"),
    [("hard_concrete", "head+neuron"), ("threshold", "weight"), ("sign", "neuron"), ("bernoulli", "head")],
)
def test_first_scores_are_in_the_order_of_taylor_importance(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str, units: str
) -> None:
    """Of the weights that the search starts from, on its own data."""
    seen: list[tuple[Scores, Scores]] = []
    plain = Gating.__init__

    def watch(self: Gating, *arguments: Any, **options: Any) -> None:
        plain(self, *arguments, **options)
        first = {name: score.clone() for name, score in self.learned().items()}
        seen.append((options["importance"], Scores(self.units, first)))

    monkeypatch.setattr(Gating, "__init__", watch)
    search = {**JOINT, "weights": False, "init": "importance", "gate": {"kind": gate}, "units": units}
    stage, store = search_of(planned(world, search={**search, "train": {"steps": 1}})), Store(tmp_path)
    execute([stage], store)
    ((importance, scores),) = seen
    task = Task.named(str(world.task))
    model, start = load_model(world.model, task, 1), load_model(store.open(stage.start), task, 1)
    found = Units.of(model, units, fingerprint(model))
    copy_base(start, model)
    copy_head(start, model)
    batches = read_batches(stage, workspace(store), model, max_length=16, count=16)
    wanted = Scores(found, unit_scores("taylor", model, found, batches))
    assert all(torch.equal(importance[name], values) for name, values in wanted.items())
    shares = torch.cat([wanted[g.name].flatten() / g.unit_weights for g in found.groups])
    first = torch.cat([scores[g.name].flatten() for g in found.groups])
    assert (first[shares.argsort()].diff() >= 0).all()
    assert first.unique().numel() > 0.5 * first.numel()


def test_it_composes_with_what_trains_weights(world: World, tmp_path: Path) -> None:
    """A loss against a bias, augmented texts, a teacher, and attacks in the loop."""
    train = {
        "steps": 14,
        "augment": {"of": ["typos"], "share": 0.5},
        "distill": {"hidden": 0.1},
        "adversary": {"kind": "attack", "recipe": "deepwordbug", "share": 0.05, "query_budget": 5},
        "loss": {"kind": "poe"},
    }
    plan = planned(world, search={**JOINT, "train": train}, bias={"method": "shallow"})
    stage, store = search_of(plan), Store(tmp_path)
    assert stage.bias is not None
    assert stage.distill_from is not None
    execute([stage], store)
    task = stage.data.definition
    model, start = (load_model(store.open(one), task, 9) for one in (stage, stage.start))
    assert not same_weights(model, start)


REFUSED = [
    ({"search": {"method": "learned"}, "retrain": {"start": "searched"}}, "learned changes none here"),
    ({"search": {"method": "iterative"}, "retrain": {"start": "searched"}}, "iterative changes none here"),
    ({"search": {**JOINT, "task": "sst2"}, "retrain": {"start": "searched"}}, "weights of another task"),
    ({"search": {"method": "learned", "weights_learning_rate": 1e-4}}, "the weights are frozen"),
    (
        {"search": {**JOINT, "init": "importance", "gate": {"kind": "threshold", "initial": "random"}}},
        "orders the scores",
    ),
    ({"search": {**JOINT, "train": {"select": {"kind": "first"}}}}, "trainings without gates"),
    ({"search": JOINT, "retrain": None, "attack": {"every_epoch": True}}, "the search trains the weights"),
    ({"search": {"method": "learned", "train": {"adversary": {"kind": "attack"}}}}, "search.weights: true"),
]


@pytest.mark.parametrize(("changes", "complaint"), REFUSED)
def test_what_does_not_fit_is_explained(world: World, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecipeError, match=complaint):
        expand(world.recipe(**changes))


def test_a_dense_comparison_may_share_the_retraining(world: World) -> None:
    (cell,) = expand(world.recipe(search=None, retrain={"start": "searched"}))
    assert cell.recipe.search is None
