"""Small models cut out of larger ones: trained, evaluated, attacked, measured, written as tickets."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import tombola
import tombola.api
from tests.children import run_python
from tests.pipeline.running import execute, plans, workspace
from tests.world import World, make_world
from tombola.errors import RecipeError
from tombola.pipeline.stages.fit import FitStage
from tombola.pipeline.stages.shrink import Shrink
from tombola.pipeline.stages.train import Train
from tombola.recipe.grid import expand
from tombola.store.store import Store
from tombola.tickets.ticket import Ticket

SEARCH = {"method": "importance", "units": "head+neuron", "criterion": "taylor", "batches": 2}
RETRAIN = {"start": "finetuned", "shrink": True, "epochs": 2}


def small(world: World, **changes):
    recipe = {"search": SEARCH, "draw": {"sparsity": 0.5, "layout": "uniform"}, "retrain": RETRAIN}
    (plan,) = plans(world, **{**recipe, **changes})
    return plan


def test_an_ordinary_small_model_is_trained(world: World, tmp_path: Path) -> None:
    plan, store = small(world, measure={"batch_sizes": [2], "length": 8}), Store(tmp_path / "store")
    assert isinstance(plan.model, Train)
    cut = plan.model.start
    assert isinstance(cut, Shrink)
    assert plan.model.mask is None
    execute(plan.ends(), store)
    space = workspace(store)
    task = plan.model.data.definition
    dense, before, after = cut.load_dense(space), cut.load(space, task), plan.model.load(space, task)
    assert not hasattr(after.config, "quantization_config")
    assert after.config.num_hidden_layers * after.config.intermediate_size < 2 * 24
    assert before.num_parameters() == after.num_parameters() < dense.num_parameters()
    assert torch.equal(
        before.bert.embeddings.word_embeddings.weight, dense.bert.embeddings.word_embeddings.weight
    )
    assert not torch.equal(before.classifier.weight, after.classifier.weight)
    assert isinstance(plan.mask, FitStage)
    assert store.read(plan.mask).weight_sparsity >= 0.4
    fitted = plan.mask.fitted(store.open(plan.mask))
    assert 0.5 <= fitted.reached < 0.75
    assert "cannot represent fewer heads" in (fitted.note or "")
    assert plan.measured is not None
    measured = store.read(plan.measured)
    assert measured.ticket.parameters == after.num_parameters()
    assert measured.dense.parameters == dense.num_parameters()
    assert set(measured.speedup) == {2}
    (evaluated,) = plan.evaluations.values()
    assert store.read(evaluated).scores["accuracy"].value > 0.5


def test_a_free_layout_is_trained_as_a_shrunk_folder(world: World, tmp_path: Path) -> None:
    search = {"method": "magnitude", "units": "head+neuron"}
    plan = small(world, search=search, draw={"sparsity": 0.4}, retrain={"shrink": True, "epochs": 1})
    store = Store(tmp_path / "store")
    execute(plan.ends(), store)
    model = plan.model.load(workspace(store), plan.model.data.definition)
    assert model.config.quantization_config.quant_method == "tombola"
    assert plan.model.start.of is None


def test_steps_of_a_gradual_removal_are_nested(world: World, tmp_path: Path) -> None:
    draw = {"sparsity": 0.6, "layout": "uniform", "rounds": 2}
    plan = small(
        world, draw=draw, retrain={"shrink": True, "epochs": 1}, search={**SEARCH, "train": {"epochs": 1}}
    )
    last = plan.model.start
    between = last.of
    assert isinstance(between, Train)
    assert between.train.epochs == 1
    first = between.start
    assert isinstance(first, Shrink)
    assert last.within.key == first.mask.key
    store = Store(tmp_path / "store")
    execute(plan.ends(), store)
    space = workspace(store)
    outer, inner = first.mask.load(space), last.mask.load(space)
    assert outer.contains(inner)
    assert outer.base == inner.base
    sizes = [stage.load(space, plan.model.data.definition).num_parameters() for stage in (first, last)]
    assert sizes[1] < sizes[0] < last.load_dense(space).num_parameters()
    task = plan.model.data.definition
    trained, cut = between.load(space, task), last.load(space, task)
    kept = torch.isin(
        cut.bert.encoder.layer[0].intermediate.dense.bias,
        torch.cat([layer.intermediate.dense.bias for layer in trained.bert.encoder.layer]),
    )
    assert kept.all()


@pytest.mark.parametrize("layout", ["uniform", "free"])
def test_the_ticket_is_the_small_model(tmp_path: Path, layout: str) -> None:
    world = make_world(tmp_path / "world")
    draw = {"layout": layout, "parameters": 0.8}
    recipe = world.recipe(
        search=SEARCH,
        draw=draw,
        retrain=RETRAIN,
        attack={"recipes": ["deepwordbug"], "n": 4},
        measure={"batch_sizes": [2], "length": 8},
    )
    result = tombola.run(recipe, store=tmp_path / "store", output=tmp_path / "out")
    (cell,) = result.cells
    assert cell.fitted is not None
    assert cell.fitted.reached <= 0.8
    folder = tmp_path / "out" / cell.ticket
    ticket = Ticket.from_pretrained(folder)
    assert ticket.is_cut
    dense = ticket.info["cut"]["dense_parameters"]
    assert ticket.model().num_parameters() == ticket.shrink().num_parameters() <= 0.8 * dense
    scores = tombola.evaluate(folder)
    assert scores["validation"]["accuracy"].value == cell.scores["validation"]["accuracy"].value
    assert tombola.attack(folder, "deepwordbug", n=3).summary()["n"] == 3
    assert tombola.inspect(folder).masks
    shrunk = tombola.api.shrink(folder, tmp_path / "shrunk")
    assert (shrunk.before.parameters, shrunk.after.parameters) == (dense, ticket.model().num_parameters())
    assert "parameters, the dense one" in (folder / "README.md").read_text()
    if layout == "uniform":
        code = (
            "import sys\nfrom transformers import AutoModelForSequenceClassification as A\n"
            "print(A.from_pretrained(sys.argv[1]).num_parameters(), 'tombola' in sys.modules)"
        )
        assert run_python("-c", code, folder).split() == [str(ticket.model().num_parameters()), "False"]
    assert (
        json.loads((folder / "config.json").read_text()).get("quantization_config") is None
        or layout == "free"
    )
    AutoModelForSequenceClassification.from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draw": {"speedup": 2, "sparsity": 0.5}}, "remove one"),
        ({"draw": {"layout": "uniform", "heads": 2}}, "layout: uniform"),
        ({"draw": {"batch_size": 8}}, "batch_size: only works with speedup or latency"),
        ({"draw": {"rounds": 2}}, "rounds: only works with"),
        ({"draw": {"speedup": 2, "rounds": 2}, "retrain": {}}, "retrain.shrink: true"),
        ({"draw": {"speedup": 2, "rounds": 2}}, "retrain.start"),
        (
            {"draw": {"speedup": 2, "rounds": 2}, "search": {"method": "importance"}},
            "a layer without its FFN cannot be scored.*head\\+neuron",
        ),
        (
            {"draw": {"speedup": 2}, "search": {"method": "iterative", "units": "head"}},
            "iterative does not draw once",
        ),
        ({"draw": {"speedup": 2}, "search": {"method": "magnitude"}, "retrain": {}}, "search.units"),
        ({"search": {"method": "magnitude"}}, "single weights cannot be cut out"),
        ({"draw": {"speedup": 2}, "search": {**SEARCH, "inputs": "both"}}, "needs augmentations"),
        ({"draw": {"parameters": 0.8}, "search": {**SEARCH, "layers": [0]}}, "draw.parameters: counts"),
        ({"draw": {"layout": "uniform"}, "search": {**SEARCH, "layers": [0]}}, "draw.layout: counts"),
        (
            {"draw": {"parameters": 0.8}, "search": {**SEARCH, "order": "losing"}},
            "draw.parameters: keeps the most",
        ),
        (
            {"draw": {"layout": "uniform"}, "search": {**SEARCH, "ffn_ratio": 0.5}},
            "leave out search.ffn_ratio",
        ),
        ({"draw": {"speedup": 2, "layers": "most"}}, "layers: needs equal layers"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict, message: str) -> None:
    recipe = {"model": "m", "task": "rte", "search": SEARCH, "retrain": RETRAIN, **changes}
    with pytest.raises(RecipeError, match=message):
        expand(recipe)
