"""Learned masks on the road: what is shared, what a search depends on, and what it leaves behind."""

import json

import pytest
import torch

from tests.pipeline.running import execute
from tombola.errors import RecipeError
from tombola.gates import L0, Exact, Gating
from tombola.masks import Mask, Scores, draw
from tombola.models.loading import load_model
from tombola.pipeline.planner import plan_cell
from tombola.recipe.grid import expand
from tombola.search.learned import Learned
from tombola.store.store import Store
from tombola.tasks import Task

pytestmark = pytest.mark.portable

HARD_CONCRETE = {"method": "learned", "train": {"epochs": 2}}
THRESHOLD = {
    "method": "learned",
    "start": "pretrained",
    "gate": {"kind": "threshold"},
    "budget": {"kind": "exact", "reset_every": 5},
    "train": {"epochs": 2, "learning_rate": 0.01},
}


def planned(world, **changes):
    (cell,) = expand(world.recipe(**changes))
    return plan_cell(cell)


def scores_stage(one):
    return one.mask.inputs["scores"]


def test_scores_are_optimised_as_published_for_their_gate_unless_it_is_said():
    robust, masked = Learned(), Learned(gate={"kind": "threshold"})
    assert (robust.train.learning_rate, robust.train.weight_decay, robust.train.warmup) == (0.1, 1e-6, 0.1)
    assert (robust.train.epochs, masked.train.epochs) == (20, 5)
    assert (masked.train.learning_rate, masked.train.weight_decay) == (5e-5, 0.0)
    said = Learned(gate={"kind": "threshold"}, train={"learning_rate": 0.1, "batch_size": 8})
    assert (said.train.learning_rate, said.train.batch_size, said.train.epochs) == (0.1, 8, 5)
    assert isinstance(robust.effective_budget, L0)
    assert isinstance(masked.effective_budget, Exact)


@pytest.mark.parametrize("rate", [2e-5, 5e-5, 0.1])
def test_settings_survive_being_written_down(rate):
    for gate in ("hard_concrete", "threshold", "sign", "bernoulli"):
        settings = Learned(gate={"kind": gate}, train={"learning_rate": rate})
        assert Learned(**settings.model_dump(mode="json", exclude_defaults=True)) == settings


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"start": "pretrained", "start_step": 3}, "needs start: finetuned"),
        ({"start_step": 3, "start_share": 0.5}, "set only one of them"),
        (
            {"gate": {"kind": "hardconcrete"}},
            "search.gate: unknown gate 'hardconcrete'. Did you mean 'hard_concrete'",
        ),
        ({"gate": {"kind": "threshold", "initial": "firm"}}, "search.gate.initial"),
        ({"budget": {"kind": "l0", "wieght": 1}}, "weight"),
        ({"train": {"epochs": 0}}, "must be more than 0"),
    ],
)
def test_a_wrong_search_is_explained(world, said, complaint):
    with pytest.raises(RecipeError, match=complaint):
        expand(world.recipe(search={"method": "learned", **said}))


def test_scores_under_l0_are_learned_once_and_drawn_at_any_sparsity(world):
    one, two = (planned(world, search=HARD_CONCRETE, draw={"sparsity": s}) for s in (0.3, 0.7))
    assert scores_stage(one).key == scores_stage(two).key
    assert one.mask.key != two.mask.key


def test_scores_under_a_count_depend_on_sparsity_and_scope(world):
    keys = {
        scores_stage(planned(world, search=THRESHOLD, draw={"sparsity": s, "scope": scope})).key
        for s in (0.3, 0.7)
        for scope in ("local", "global")
    }
    assert len(keys) == 4


def test_how_often_it_saves_does_not_rename_a_search_nor_its_draw(world):
    often = {**HARD_CONCRETE, "train": {"epochs": 2, "checkpoint_minutes": 1}}
    one, two = planned(world, search=HARD_CONCRETE), planned(world, search=often)
    assert (one.mask.key, scores_stage(one).key) == (two.mask.key, scores_stage(two).key)


def test_timing_studies_start_from_a_share_of_the_fine_tuning(world):
    stages = {
        share: scores_stage(planned(world, search={**HARD_CONCRETE, "start_share": share})).inputs["start"]
        for share in (0.25, 0.5)
    }
    assert [stage.stop_at for stage in stages.values()] == [0.25, 0.5]
    assert scores_stage(planned(world, search=HARD_CONCRETE)).inputs["start"].stop_at is None


def test_a_mask_on_untouched_weights_keeps_their_head_with_the_ticket(world, tmp_path):
    # Regression: the released code searches under a random head, and loses it.
    one = planned(
        world,
        search=THRESHOLD,
        draw={"sparsity": 0.4, "scope": "local"},
        retrain={"epochs": 0},
        evaluate={"on": ["validation"]},
    )
    assert not scores_stage(one).inputs
    store = Store(tmp_path)
    execute(one.ends(), store)
    scores = Scores.load(store.open(scores_stage(one)) / "scores.safetensors")
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    assert mask == draw(scores, sparsity=0.4, scope="local")
    assert all(share == pytest.approx(0.4, abs=0.005) for share in mask.by_kind().values())
    task = Task.named(str(world.task))
    ticket, origin = load_model(store.open(one.model), task, 99), load_model(world.model, task, seed=1)
    assert torch.equal(ticket.classifier.weight, origin.classifier.weight)
    for name, kept in mask.tensors(origin).items():
        weight = origin.base_model.get_parameter(name)
        assert torch.equal(ticket.base_model.get_parameter(name), weight * kept)
    log = json.loads((store.open(scores_stage(one)) / "log.json").read_text())
    assert log["sparsities"][-1][1] == pytest.approx(mask.sparsity)
    assert log["steps"] == 24


def test_a_robust_ticket_is_searched_on_the_fine_tuned_model_with_the_adversary(world, tmp_path):
    adversary = {"kind": "freelb", "steps": 2}
    search = {**HARD_CONCRETE, "units": "head", "train": {"steps": 3, "adversary": adversary}}
    one = planned(
        world, search=search, draw={"sparsity": 0.5}, train={**world.recipe()["train"], "epochs": 1}
    )
    store = Store(tmp_path)
    execute([one.mask], store)
    mask = Mask.load(store.open(one.mask) / "mask.safetensors")
    assert (mask.removed, mask.count) == (4, 8)
    origin = load_model(world.model, Task.named(str(world.task)), seed=1)
    mask.check(origin)  # it carries the fingerprint of the pre-trained model


@pytest.mark.parametrize(("sample", "draws"), [("pass", 6), ("step", 3)])
def test_a_recipe_says_whether_passes_or_steps_have_gates_of_their_own(
    world, tmp_path, monkeypatch, sample, draws
):
    drawn = []
    plain = Gating.sample
    monkeypatch.setattr(Gating, "sample", lambda self, *number: (drawn.append(number), plain(self, *number)))
    train = {"steps": 3, "adversary": {"kind": "freelb", "steps": 2}}
    search = {"method": "learned", "units": "head", "start": "pretrained", "sample": sample, "train": train}
    one = planned(world, search=search, draw={"sparsity": 0.5})
    execute(one.mask.with_inputs(), Store(tmp_path))
    assert len(drawn) == len(set(drawn)) == draws


def test_passes_are_what_is_sampled_for_unless_it_is_said(world):
    keys = [
        scores_stage(planned(world, search={**HARD_CONCRETE, **said}, draw={"sparsity": 0.5})).key
        for said in ({}, {"sample": "pass"}, {"sample": "step"})
    ]
    assert keys[0] == keys[1] != keys[2]
