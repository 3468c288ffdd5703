"""What a recipe asks for beyond what there is, is said before any work is done."""

import pytest

import tombola
from tests.tiny import tiny
from tests.world import World, make_world
from tombola.api import plan_run
from tombola.errors import RecipeError, TombolaError


def test_a_length_beyond_the_positions_is_said_once(world: World, caplog):
    train = {**world.recipe()["train"], "max_length": 512}
    plan_run(world.recipe(train=train, seed=[1, 2, 3]))
    told = [one.getMessage() for one in caplog.records]
    assert told == [
        f"train.max_length: 512 tokens exceed the 64 positions of {world.model}: texts are truncated to 64"
    ]


def test_roberta_has_fewer_positions_than_its_config_says(tmp_path, caplog):
    roberta = make_world(tmp_path, "roberta")
    plan_run(roberta.recipe(train={"max_length": 64}))
    assert "exceed the 63 positions" in caplog.text


def test_a_subset_beyond_the_data_is_said_once(world: World, caplog):
    plan_run(world.recipe(data={"train": 193}, seed=[1, 2]))
    told = [one.getMessage() for one in caplog.records]
    assert told == [
        "data.train: 193 examples were requested, but tiny/train has only 192: all of them are used"
    ]
    caplog.clear()
    plan_run(world.recipe(data={"train": 192}))
    assert caplog.records == []


def test_an_attack_on_more_examples_than_there_are_attacks_all_of_them(world: World, caplog):
    attack = {"recipes": ["deepwordbug"], "n": 49}
    plan = plan_run(world.recipe(attack=attack, seed=[1, 2]))
    assert [one.getMessage() for one in caplog.records] == [
        "attack.n: 49 examples were requested, but tiny/validation has only 48: all of them are attacked"
    ]
    assert {stage.n for cell in plan.cells for stage in cell.attacks.values()} == {48}
    caplog.clear()
    plan_run(world.recipe(attack={**attack, "n": 48}))
    assert caplog.records == []


def test_a_share_of_the_heads_that_every_layer_keeps_is_said_once(world: World, caplog):
    search = {"method": "importance", "units": "head"}
    plan_run(world.recipe(search=search, draw={"sparsity": 0.99}, seed=[1, 2]))
    assert [one.getMessage() for one in caplog.records] == [
        "draw.sparsity: 0.99 of the 8 heads would be 7, but only 6 are removed: each of the 2 layers keeps "
        "search.min_heads: 1"
    ]
    caplog.clear()
    plan_run(world.recipe(search=search, draw={"sparsity": 0.75}))
    plan_run(world.recipe(search={**search, "min_heads": 0}, draw={"sparsity": 0.99}))
    assert caplog.records == []


def test_a_store_that_cannot_be_written_is_said(world: World, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        TombolaError, match=r"the store .*/file/store cannot be written \(Not a directory\): choose"
    ):
        tombola.run(world.recipe(), output=tmp_path / "out", store=tmp_path / "file" / "store")


def test_a_missing_tracker_is_refused_once_before_the_work(world: World, tmp_path):
    train = {**world.recipe()["train"], "report_to": ["comet_ml"]}
    with pytest.raises(
        RecipeError, match=r"^train.report_to: 'comet_ml' is not installed: pip install comet_ml, or"
    ):
        tombola.run(world.recipe(train=train, seed=[1, 2]), output=tmp_path / "out", store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
    train["report_to"] = ["tensorbord"]
    with pytest.raises(RecipeError, match=r"Did you mean 'tensorboard'\?"):
        plan_run(world.recipe(train=train))


@pytest.mark.parametrize("place", ["train", "search"])
@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"loss": {"kind": "cross_entropy", "label_smoothing": 0.1}}, "loss.label_smoothing"),
        ({"distill": {"temperature": 1.0}}, "distill.temperature"),
    ],
)
def test_numbers_have_neither_smooth_labels_nor_a_temperature(world: World, tmp_path, place, settings, key):
    for split in ("train", "validation"):
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\n" + "lovely plot\t0.5\ndull plot\t0.1\n" * 8)
    files = "{train: train.tsv, validation: validation.tsv}"
    (tmp_path / "number.yaml").write_text(
        "{name: number, version: 1, kind: regression, text: sentence, metrics: [pearson], "
        f"source: {{files: {files}}}}}"
    )
    changes = (
        {"train": settings} if place == "train" else {"search": {"method": "learned", "train": settings}}
    )
    with pytest.raises(RecipeError, match=rf"{key}: number is a regression task"):
        plan_run({**world.recipe(**changes), "task": str(tmp_path / "number.yaml")})


@pytest.mark.parametrize(
    ("search", "draw", "complaint"),
    [
        (
            {"method": "importance", "units": "ffn"},
            {"parameters": 0.1},
            r"draw\.parameters: the smallest possible model has [\d.]+% of the parameters: set draw\.parameters to "
            r"at least 0\.\d+, or search\.units to head\+neuron",
        ),
        (
            {"method": "importance", "units": "ffn"},
            {"sparsity": 0.4, "layout": "uniform"},
            r"draw\.sparsity: the smallest possible model removes 0\.0% of the weights: .* search\.units to head",
        ),
        (
            {"method": "importance", "units": "head+neuron"},
            {"sparsity": 0.4, "layout": "uniform", "layers": 3},
            r"draw\.layers: with these units the model can keep 1 to 2 layers, not 3",
        ),
        (
            {"method": "magnitude", "classifier": True},
            {"sparsity": 0.5, "pattern": "4x4"},
            r"draw\.pattern 4x4: head\.classifier",
        ),
    ],
)
def test_a_draw_that_no_scores_can_meet_is_refused(world: World, search, draw, complaint):
    with pytest.raises(RecipeError, match=complaint):
        plan_run(world.recipe(search=search, draw=draw))


@pytest.mark.parametrize("method", ["sparsegpt", "wanda", "block_influence"])
def test_calibration_of_layers_that_are_passed_several_times_is_refused(tmp_path, method):
    albert = make_world(tmp_path, "albert")
    with pytest.raises(TombolaError, match="albert models apply the same layers several times"):
        plan_run(albert.recipe(search={"method": method}))


def test_layers_of_a_model_with_a_single_one_cannot_be_shuffled(tmp_path):
    single = make_world(tmp_path)
    tiny("bert", "base", num_hidden_layers=1).save_pretrained(single.model)
    control = {"kind": "shuffle", "across": "layers"}
    with pytest.raises(TombolaError, match="control: this model has a single layer"):
        plan_run(single.recipe(search={"method": "magnitude"}, retrain={"control": control}))
