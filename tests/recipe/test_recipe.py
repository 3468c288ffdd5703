"""Recipes: grids, variants, overrides, and the sentence that every mistake gets."""

from itertools import product

import pytest

from tombola.errors import RecipeError, TombolaError
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe, merge
from tombola.search.magnitude import Magnitude

BASE = {"name": "r", "model": "minilm", "task": "reviews"}
IMP = {"method": "iterative"}


def refused(**changes):
    with pytest.raises(TombolaError) as caught:
        expand({**BASE, **changes})
    return str(caught.value)


def test_a_plain_recipe_is_one_dense_cell():
    (cell,) = expand(BASE)
    assert cell.recipe.search is None
    assert cell.axes == {}
    assert cell.label == "r"


def test_lists_make_a_grid_with_seeds_innermost():
    cells = expand({**BASE, "seed": [1, 2], "search": IMP, "draw": {"sparsity": [0.3, 0.5]}})
    assert [(c.recipe.draw.sparsity, c.recipe.seed) for c in cells] == [
        (0.3, 1),
        (0.3, 2),
        (0.5, 1),
        (0.5, 2),
    ]
    assert cells[0].axes == {"draw.sparsity": 0.3, "seed": 1}
    assert len({cell.label for cell in cells}) == 4


def test_cells_share_the_sections_that_no_axis_changes():
    cells = expand(
        {**BASE, "train": {"epochs": 2}, "seed": [1, 2], "search": IMP, "draw": {"sparsity": [0.3, 0.5]}}
    )
    for section in ("data", "train", "search", "retrain", "evaluate"):
        assert len({id(getattr(cell.recipe, section)) for cell in cells}) == 1, section
    assert len({id(cell.recipe.draw) for cell in cells}) == 2


def test_each_cell_is_what_its_values_alone_give():
    axes = {"epochs": [1, 2], "seed": [1, "2", 3.0], "sparsity": [0.3, 0.5]}

    def recipe(epochs, seed, sparsity):
        draw, transferred = {"sparsity": sparsity}, {**IMP, "task": "reviews_tweets"}
        return {**BASE, "seed": seed, "train": {"epochs": epochs}, "search": transferred, "draw": draw}

    cells = expand(recipe(**axes))
    alone = [expand(recipe(*values))[0] for values in product(axes["epochs"], axes["seed"], axes["sparsity"])]
    assert len(cells) == len(alone) == 12
    for cell in cells:
        same = [one for one in alone if one.recipe == cell.recipe and one.source == cell.source]
        assert len(same) == 1
        assert cell.raw() == same[0].raw()
        assert cell.source.seed == cell.recipe.seed


def test_a_wrong_seed_is_reported_with_the_other_mistakes():
    message = refused(seed=[1, -1, "two"], search=IMP, draw={"sparsity": [0.5, 2]}, train={"epochs": -1})
    assert message.splitlines()[1:] == [
        "  train.epochs: must be greater than or equal to 0, not -1",
        "  seed: must be greater than or equal to 0, not -1",
        "  seed: must be a valid integer, not 'two'",
        "  draw.sparsity: must be less than 1, not 2",
    ]


def test_a_seed_of_one_task_holds_for_all_of_its_cells():
    cells = expand({**BASE, "seed": [1, 7, 3], "task": ["rte", "sst2"], "per_task": {"rte": {"seed": 7}}})
    assert [cell.recipe.seed for cell in cells] == [7, 7, 7, 1, 7, 3]


def test_a_setting_that_is_a_list_by_nature_is_no_grid():
    (cell,) = expand({**BASE, "evaluate": {"on": ["validation", "test"]}, "train": {"betas": [0.9, 0.98]}})
    assert cell.recipe.evaluate.on == (
        "validation",
        "test",
    )
    assert cell.recipe.train.betas == (0.9, 0.98)


def test_a_grid_over_whole_searches():
    cells = expand({**BASE, "search": [IMP, {"method": "random"}]})
    assert [cell.recipe.search.method for cell in cells] == ["iterative", "random"]


def test_a_dense_variant_has_no_sparsities():
    cells = expand(
        {
            **BASE,
            "draw": {"sparsity": [0.3, 0.5]},
            "variants": {"dense": {"search": None}, "imp": {"search": IMP}},
        }
    )
    assert [(cell.variant, cell.axes) for cell in cells] == [
        ("dense", {}),
        ("imp", {"draw.sparsity": 0.3}),
        ("imp", {"draw.sparsity": 0.5}),
    ]


def test_retrain_is_as_train_unless_it_says_otherwise():
    (cell,) = expand({**BASE, "train": {"epochs": 7, "learning_rate": 1e-4}, "retrain": {"epochs": 2}})
    assert (cell.recipe.retrain.epochs, cell.recipe.retrain.learning_rate) == (2, 1e-4)


def test_a_grid_over_training_is_one_axis_for_train_and_retrain():
    cells = expand({**BASE, "train": {"learning_rate": [1e-5, 2e-5]}})
    assert [(c.recipe.train.learning_rate, c.recipe.retrain.learning_rate) for c in cells] == [
        (1e-5, 1e-5),
        (2e-5, 2e-5),
    ]


@pytest.mark.parametrize("retrain", [{"epochs": [1, 2]}, [{"epochs": 1}, None]])
def test_a_grid_over_retrain_has_one_dense_model_which_does_not_retrain(retrain):
    cells = expand(
        {**BASE, "retrain": retrain, "variants": {"dense": {"search": None}, "imp": {"search": IMP}}}
    )
    assert [(cell.variant, len(cell.axes)) for cell in cells] == [("dense", 0), ("imp", 1), ("imp", 1)]


def test_retrain_null_means_no_retraining():
    (cell,) = expand({**BASE, "search": IMP, "retrain": None})
    assert cell.recipe.retrain is None


def test_per_task_settings_follow_the_task_and_the_source_of_the_mask():
    cells = expand(
        {
            **BASE,
            "task": ["rte", "sst2"],
            "train": {"epochs": 3},
            "per_task": {"rte": {"train": {"epochs": 10}}, "mrpc": {"train": {"epochs": 5}}},
            "search": {**IMP, "task": "mrpc"},
        }
    )
    assert [(c.recipe.task, c.recipe.train.epochs, c.recipe.retrain.epochs) for c in cells] == [
        ("rte", 10, 10),
        ("sst2", 3, 3),
    ]
    assert [(c.source.task, c.source.train.epochs) for c in cells] == [("mrpc", 5), ("mrpc", 5)]


def test_a_mask_of_the_own_task_has_no_other_source():
    (cell,) = expand({**BASE, "search": {**IMP, "task": "reviews"}})
    assert cell.source is None


def test_overrides_reach_into_the_recipe(tmp_path):
    file = tmp_path / "recipe.yaml"
    file.write_text("model: minilm\ntask: reviews\ntrain: {epochs: 3}\n")
    raw = load_recipe(file, ["train.epochs=5", "seed=[1, 2]", "train.learning_rate=1e-4"], model="other")
    cells = expand(raw)
    assert [cell.recipe.seed for cell in cells] == [1, 2]
    assert cells[0].recipe.train.epochs == 5
    assert cells[0].recipe.train.learning_rate == 1e-4
    assert cells[0].recipe.model == "other"


def test_an_override_wins_over_per_task_and_variants():
    recipe = {
        **BASE,
        "task": ["rte", "sst2"],
        "train": {"max_length": 128, "epochs": 3},
        "per_task": {"rte": {"train": {"max_length": 384, "epochs": 10}}},
        "search": {"method": "learned", "units": "weight"},
        "variants": {
            "dense": {"search": None},
            "learned": {"train": {"max_length": 64}},
            "imp": {"search": {"method": "iterative", "step": 0.2}},
        },
    }
    cells = expand(load_recipe(recipe, ["train.max_length=32", "search.units=head", "search.start_step=5"]))
    assert {cell.recipe.train.max_length for cell in cells} == {32}
    assert [cell.recipe.train.epochs for cell in cells] == [10, 3] * 3
    by_variant = {cell.variant: cell.recipe.search for cell in cells}
    assert by_variant["dense"] is None
    assert (by_variant["learned"].units, by_variant["learned"].start_step) == ("head", 5)
    assert (by_variant["imp"].units, by_variant["imp"].step) == ("head", 0.2)
    assert recipe["per_task"]["rte"]["train"]["max_length"] == 384
    grid = expand(load_recipe(recipe, ["train.max_length=[16,32]"], task="rte"))
    assert sorted({cell.recipe.train.max_length for cell in grid}) == [16, 32]


def test_another_method_replaces_the_settings_of_a_variants_own():
    learned = {"method": "learned", "weights": True}
    recipe = {**BASE, "search": IMP, "variants": {"imp": {}, "learned": {"search": learned}}}
    for cell in expand(load_recipe(recipe, ["search.method=magnitude"])):
        assert cell.recipe.search == Magnitude()


def test_an_override_of_per_task_itself_is_laid_over_it():
    recipe = {**BASE, "task": "rte", "per_task": {"rte": {"train": {"epochs": 10}}}}
    (cell,) = expand(load_recipe(recipe, ["train.epochs=1", "per_task.rte.train.epochs=2"]))
    assert cell.recipe.train.epochs == 2


def test_variants_are_dropped_and_replaced():
    recipe = {**BASE, "search": IMP, "variants": {"dense": {"search": None}, "imp": {}, "omp": {"seed": 2}}}
    assert {cell.variant for cell in expand(load_recipe(recipe, ["variants.omp=null"]))} == {"dense", "imp"}
    assert {cell.variant for cell in expand(load_recipe(recipe, variants__omp=None))} == {"dense", "imp"}
    (only,) = expand(load_recipe(recipe, ["variants={one: {seed: 5}}"]))
    assert (only.variant, only.recipe.seed) == ("one", 5)
    (plain,) = expand(load_recipe(recipe, ["variants=null"]))
    assert plain.recipe.search.method == "iterative"
    assert len(expand(load_recipe(recipe, ["variants.imp.seed=7"]))) == 3
    with pytest.raises(TombolaError, match=r"unknown variant 'ompp'\. Did you mean 'omp'"):
        load_recipe(recipe, ["variants.ompp=null"])


def test_a_list_chooses_among_the_variants():
    recipe = {**BASE, "search": IMP, "variants": {"dense": {"search": None}, "imp": {}, "omp": {"seed": 2}}}
    for chosen in (
        load_recipe(recipe, ["variants=[omp, dense]"]),
        load_recipe(recipe, variants=("dense", "omp")),
    ):
        assert [cell.variant for cell in expand(chosen)] == ["dense", "omp"]
    with pytest.raises(TombolaError, match=r"unknown variant 'ompp'\. Did you mean 'omp'"):
        load_recipe(recipe, ["variants=[dense, ompp]"])
    with pytest.raises(TombolaError, match=r"name at least one"):
        load_recipe(recipe, ["variants=[]"])
    with pytest.raises(TombolaError, match=r"the recipe has none to choose from"):
        load_recipe(BASE, ["variants=[dense]"])


def test_variants_may_be_named_by_numbers():
    recipe = {**BASE, "variants": {1: {}, 2: {"seed": 2}}}
    cells = expand(load_recipe(recipe, ["variants.1=null", "variants.2.train.epochs=4"]))
    assert [(cell.variant, cell.recipe.train.epochs) for cell in cells] == [("2", 4.0)]


def test_merging_replaces_another_methods_settings():
    base = {"search": {"method": "iterative", "step": 0.2}}
    assert merge(base, {"search": {"method": "random"}}) == {"search": {"method": "random"}}
    assert merge(base, {"search": {"schedule": "geometric"}})["search"]["step"] == 0.2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"modle": "x"}, "unknown key 'modle'. Did you mean 'model'"),
        ({"train": {1: 2}}, "train: unknown key '1'"),
        ({"name": ["one", "two"]}, "name: must be a valid string, not ['one', 'two']"),
        ({"train": {"epoch": 3}}, "train: unknown key 'epoch'. Did you mean 'epochs'"),
        ({"train": {"epochs": "many"}}, "train.epochs: must be a valid number"),
        ({"train": {"epochs": -1}}, "train.epochs: must be greater than or equal to 0, not -1"),
        ({"train": 3}, "train: takes"),
        ({"measure": {"batch_sizes": [0]}}, "measure.batch_sizes.0: must be greater than 0, not 0"),
        ({"measure": {"threads": 0}}, "measure.threads: must be greater than 0, not 0"),
        ({"evaluate": {"every": 0}}, "evaluate.every: must be 'epoch' or greater than 0, not 0"),
        ({"evaluate": {"every": "step"}}, "evaluate.every: must be 'epoch' or a valid integer, not 'step'"),
        ({"search": {"method": "iterativ"}}, "unknown search method 'iterativ'. Did you mean 'iterative'"),
        ({"search": {"step": 0.1}}, "search: needs a method"),
        ({"search": {"method": "iterative", "stepp": 1}}, "search: unknown key 'stepp'. Did you mean 'step'"),
        ({"search": IMP, "draw": {"sparsity": 70}}, "draw.sparsity: must be less than 1, not 70"),
        ({"search": IMP, "draw": {"sparsity": []}}, "draw.sparsity: an empty list makes an empty grid"),
        ({"variants": {"a": {"draw": {"scop": "x"}, "search": IMP}}}, "variants.a.draw: unknown key 'scop'"),
        ({"variants": ["a"]}, "variants: takes a mapping"),
        ({"retrain": {"control": {"kind": "shufle"}}}, "retrain.control"),
        ({"precision": "fp8"}, "precision: must be 'auto', 'fp32', 'bf16' or 'fp16', not 'fp8'"),
    ],
)
def test_mistakes_get_one_sentence_with_the_path(changes, sentence):
    message = refused(**changes)
    assert sentence in message
    assert "\n" not in message


def test_all_mistakes_of_all_variants_come_at_once_each_with_its_path():
    message = refused(
        train={"epoch": 3, "batch_size": -1, "loss": {"kind": "pox"}},
        search={"method": "learned", "gate": {"kind": "threshold", "initial": "firm"}},
        variants={"a": {"draw": {"sparsity": 7}}, "b": {"search": {"method": "nope"}}, "c": {"seed": [1, 2]}},
    )
    assert message.split("\n  ") == [
        "6 mistakes:",
        "train.batch_size: must be greater than 0, not -1",
        "train.loss: unknown loss 'pox'. Did you mean 'poe'?",
        "train: unknown key 'epoch'. Did you mean 'epochs'?",
        "search.gate.initial: must be 'hard', 'soft' or 'random', not 'firm'",
        "variants.a.draw.sparsity: must be less than 1, not 7",
        "variants.b.search: unknown search method 'nope'. Valid: block_influence, given, grasp, importance, iterative, "
        "layers, learned, magnitude, random, ria, sparsegpt, wanda.",
    ]


def test_a_mistake_of_one_task_is_named_by_the_task():
    message = refused(task=["rte", "sst2"], per_task={"rte": {"train": {"epochs": -1}}, "sts2": {}})
    assert message.split("\n  ") == [
        "2 mistakes:",
        "per_task: unknown task 'sts2'. Did you mean 'stsb' or 'sst2'?",
        "per_task.rte.train.epochs: must be greater than or equal to 0, not -1",
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task": "reveiws"}, "task: unknown task 'reveiws'. Did you mean 'reviews'"),
        (
            {"task": "mnli", "evaluate": {"on": ["hans/nonsense"]}},
            "evaluate.on: unknown split of hans 'nonsense'",
        ),
        (
            {"evaluate": {"on": ["validaton"]}},
            "evaluate.on: unknown split or task to evaluate on 'validaton'",
        ),
        ({"evaluate": {"on": ["stsb"]}}, "evaluate.on: cannot evaluate on 'stsb': it is a regression task"),
        ({"evaluate": {"on": ["holdout"]}}, "evaluate.on: the split 'holdout' exists only with data.holdout"),
        ({"evaluate": {"on": ["test+anti"]}}, "the split 'test+anti' exists only with data.synthetic_bias"),
        (
            {"evaluate": {"on": ["reviews_product/test+tpyos"]}},
            "evaluate.on: unknown change of test 'tpyos'. Did you mean 'typos'",
        ),
        (
            {"evaluate": {"on": ["reviews_product/test+anti"]}},
            "'test+anti' exists only for the recipe's own task",
        ),
        ({"attack": {"on": "tset"}}, "attack.on: unknown split or task to evaluate on 'tset'"),
        (
            {"data": {"mix": [{"on": "reviews_tweets/tran"}]}},
            "data.mix.0.on: unknown split of reviews_tweets 'tran'",
        ),
        ({"search": {"method": "learned", "mix": [{"on": "x/train"}]}}, "search.mix.0.on: unknown task 'x'"),
    ],
)
def test_data_that_there_is_not_is_named_when_the_recipe_is_read(changes, sentence):
    message = refused(**changes)
    assert sentence in message
    assert "\n" not in message


def test_a_grid_without_bound_is_refused(monkeypatch):
    grid = {"seed": list(range(500)), "train": {"epochs": list(range(1, 501))}}
    assert "the grid has 250,000 cells, more than 100,000" in refused(**grid)
    monkeypatch.setenv("TOMBOLA_MAX_CELLS", "10")
    assert "the grid has 12 cells, more than 10" in refused(seed=[1, 2, 3], train={"epochs": [1, 2, 3, 4]})
    monkeypatch.setenv("TOMBOLA_MAX_CELLS", "many")
    assert "TOMBOLA_MAX_CELLS: takes a number of cells, not 'many'" in refused()


def test_plugins_stand_at_the_top():
    assert "variants.a.plugins: can only be set at the top" in refused(variants={"a": {"plugins": ["x.py"]}})


def test_attacks_have_names_and_settings():
    recipes = ["pwws", "textfooler", {"name": "textfooler", "min_similarity": 0.7}]
    (cell,) = expand({**BASE, "attack": {"recipes": [*recipes, {"name": "textfooler", "called": "again"}]}})
    chosen = cell.recipe.attack.chosen()
    assert list(chosen) == ["pwws", "textfooler", "textfooler(min_similarity=0.7)", "again"]
    assert chosen["again"].canonical() == chosen["textfooler"].canonical() == {"name": "textfooler"}
    assert chosen["textfooler(min_similarity=0.7)"].min_similarity == 0.7
    (again,) = expand(cell.raw())
    assert again.recipe == cell.recipe
    assert "two attacks are called 'pwws'" in refused(attack={"recipes": ["pwws", "pwws"]})
    assert "attack.recipes.0: unknown attack 'textfoler'. Did you mean 'textfooler'" in refused(
        attack={"recipes": ["textfoler"]}
    )
    assert "attack.recipes.0: unknown key 'min_similarty'. Did you mean 'min_similarity'" in refused(
        attack={"recipes": [{"name": "textfooler", "min_similarty": 0.7}]}
    )


def test_a_missing_model_is_named():
    with pytest.raises(TombolaError, match="model: is required"):
        expand({"task": "reviews"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model: [", "line 1: not valid YAML"),
        ("- a\n- b\n", "a recipe must be a mapping of settings"),
        ("", "is empty; a recipe needs at least model and task"),
    ],
)
def test_a_file_that_is_no_recipe(tmp_path, text, sentence):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(TombolaError, match=sentence):
        load_recipe(tmp_path / "bad.yaml")


def test_a_recipe_that_is_not_there_offers_its_neighbours(tmp_path):
    (tmp_path / "quick.yaml").write_text("{}")
    with pytest.raises(TombolaError, match=r"quick\.yaml"):
        load_recipe(tmp_path / "quik.yaml")


def test_an_override_without_equals_is_explained():
    with pytest.raises(TombolaError, match="key=value"):
        load_recipe(BASE, ["epochs"])


def test_yaml_cannot_make_objects(tmp_path):
    (tmp_path / "evil.yaml").write_text("model: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(TombolaError, match="not valid YAML"):
        load_recipe(tmp_path / "evil.yaml")


def test_yaml_words_and_numbers_are_what_they_look_like(tmp_path):
    (tmp_path / "r.yaml").write_text("evaluate: {on: [validation]}\nname: no\ntrain: {learning_rate: 2e-5}\n")
    raw = load_recipe(tmp_path / "r.yaml")
    assert raw == {"evaluate": {"on": ["validation"]}, "name": "no", "train": {"learning_rate": 2e-5}}


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    (tmp_path / "r.yaml").write_text("seed: 1\nmodel: a\nseed: 2\n")
    with pytest.raises(TombolaError, match="line 3: not valid YAML: 'seed' is given twice"):
        load_recipe(tmp_path / "r.yaml")


def test_a_cell_can_be_written_down_and_read_again():
    raw = {
        **BASE,
        "task": ["rte", "sst2"],
        "seed": [1, 2],
        "train": {"epochs": 2},
        "per_task": {
            "rte": {"pooler": "new", "train": {"epochs": 10}},
            "mrpc": {"train": {"epochs": 5}},
        },
        "search": {**IMP, "step": 0.2, "task": "mrpc"},
    }
    for cell in expand(raw):
        (again,) = expand(cell.raw())
        assert again.recipe == cell.recipe
        for name in ("pooler", "train", "data"):
            assert getattr(again.source, name) == getattr(cell.source, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"search": {"step": 0.3, "train": {"epochs": 5}}},
        {"search": {"method": "learned", "gate": {"kind": "threshold"}}},
        {"search": {"method": "importance"}, "draw": {"heads": 3, "sparsity": None}},
        {"search": {"method": "importance"}, "draw": {"layout": "uniform", "sparsity": 0.4}},
        {"draw": {"scope": "local"}, "seed": 7},
        {"bias": {"method": "one_side"}, "defend": ["unicode"]},
    ],
)
def test_a_cells_recipe_has_what_is_searched_differently_on_another_task(changes):
    raw = {**BASE, "draw": {"sparsity": 0.3}, "search": {**IMP, "task": "reviews_product"}}
    (cell,) = expand({**raw, "per_task": {"reviews_product": changes}})
    (again,) = expand(cell.raw())
    assert again.recipe == cell.recipe
    for name in ("seed", "bias", "defend", "search", "draw", "train"):
        assert getattr(again.source, name) == getattr(cell.source, name)


@pytest.mark.parametrize(
    ("search", "retrain"),
    [
        (IMP, {"epochs": 3}),  # the default, which `train` differs from
        (IMP, {"augment": None, "loss": {"kind": "cross_entropy"}}),
        ({**IMP, "train": {"epochs": 3, "augment": None}}, {}),
        ({"method": "learned", "train": {"max_length": 128, "augment": None}}, None),
    ],
)
def test_a_cells_recipe_inherits_nothing_that_the_cell_did_not(search, retrain):
    train = {
        "epochs": 1,
        "max_length": 64,
        "augment": {"of": ["typos"]},
        "loss": {"kind": "cross_entropy", "label_smoothing": 0.1},
    }
    (cell,) = expand({**BASE, "train": train, "search": search, "retrain": retrain})
    (again,) = expand(cell.raw())
    assert again.recipe == cell.recipe


def test_biases_and_the_head_are_for_single_weights():
    assert "search.biases: only works with units: weight" in refused(
        search={**IMP, "units": "head", "biases": True}
    ).replace("search: biases", "search.biases")
    assert "cannot be transferred" in refused(search={**IMP, "classifier": True, "task": "sst2"})
    (cell,) = expand({**BASE, "search": {**IMP, "layers": [0, 2], "classifier": True}})
    assert cell.recipe.search.layers == (0, 2)
    assert cell.axes == {}


HEADS = {"method": "importance"}


def test_counts_are_in_place_of_a_sparsity_and_fit_the_search():
    cells = expand({**BASE, "search": HEADS, "draw": {"heads": [14, 28], "ffns": 2}})
    assert [cell.recipe.draw.counts for cell in cells] == [{"head": 14, "ffn": 2}, {"head": 28, "ffn": 2}]
    assert cells[0].axes == {"draw.heads": 14}
    again = expand(cells[0].raw())
    assert again[0].recipe.draw == cells[0].recipe.draw
    assert "replace sparsity" in refused(search=HEADS, draw={"heads": 14, "sparsity": 0.5})
    raw = {"model": "m", "task": "rte", "search": HEADS, "draw": {"sparsity": [0.1, 0.2]}}
    (cell,) = expand(load_recipe(raw, ["draw={heads: 14, sparsity: null}"]))
    assert cell.recipe.draw.counts == {"head": 14}
    assert "draw.ffns: needs search.units with ffn, not head" in refused(
        search={**HEADS, "units": "head"}, draw={"ffns": 1}
    )
    assert "iterative draws more than once" in refused(search={**IMP, "units": "head"}, draw={"heads": 3})
    assert "scope: global" in refused(search=HEADS, draw={"heads": 3, "scope": "local"})


def test_rounds_of_imp_are_trained_as_in_train_unless_they_say_otherwise():
    train = {"epochs": 3, "learning_rate": 1e-4, "warmup": 0.1}
    (cell,) = expand({**BASE, "train": train, "search": IMP})
    assert cell.recipe.search.train is None
    (cell,) = expand({**BASE, "train": train, "search": {**IMP, "train": {"epochs": 5}}})
    rounds = cell.recipe.search.train
    assert (rounds.epochs, rounds.learning_rate, rounds.warmup) == (5, 1e-4, 0.1)
    assert (cell.recipe.retrain.epochs, cell.recipe.train.epochs) == (3, 3)
    assert expand(cell.raw())[0].recipe == cell.recipe
    assert "search.train.loss: poe needs a bias model" in refused(
        search={**IMP, "train": {"loss": {"kind": "poe"}}}
    )
    assert "needs schedule: linear" in refused(search={**IMP, "epochs": "in_all", "schedule": "geometric"})
    assert "leave it out" in refused(search={**IMP, "start": "finetuned", "rewind_step": 5})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["imp", "IMP"],
            "variants: imp and IMP would share a folder on case-insensitive disks: rename one of them",
        ),
        ([1, "1"], "variants: a number and the same number in quotes are the same name: rename one of them"),
    ],
)
def test_variants_whose_folders_would_meet_are_refused(names, said):
    changes = {name: {"search": {"method": "magnitude"}} for name in names}
    with pytest.raises(RecipeError, match=said):
        expand({"model": "minilm", "task": "sst2", "variants": changes})
    assert len(expand({"model": "minilm", "task": "sst2", "variants": {"imp": {}, "omp": {}}})) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"retrain": {"epochs": 5}}, "retrain: has no effect without a search"),
        ({"draw": {"sparsity": 0.7}}, "draw: has no effect without a search"),
        ({"bias": {"method": "lexical_overlap"}}, "bias: has no effect, since no loss uses it"),
        ({"bias": {"method": "lexical_overlap"}, "train": {"loss": {"kind": "poe"}}}, None),
        ({"bias": {"method": "file", "path": "b.npy", "missing": "drop"}}, None),
        (
            {"retrain": {"epochs": 5}, "variants": {"dense": {}, "omp": {"search": {"method": "magnitude"}}}},
            None,
        ),
        ({"retrain": None}, None),
        ({"attack": {"mlm": "bert", "encoder": "e"}}, "attack.mlm: has no effect, since no attack uses it"),
        (
            {"attack": {"vectors": "v", "recipes": ["pwws"]}},
            "attack.vectors: has no effect, since no attack uses it",
        ),
        (
            {"attack": {"lexicon": "l", "recipes": ["deepwordbug"]}},
            "attack.lexicon: has no effect, since no attack uses it",
        ),
        ({"attack": {"mlm": "bert", "recipes": ["textfooler", "bert_attack"]}}, None),
    ],
)
def test_a_section_that_no_cell_uses_is_reported(changes, sentence, caplog):
    expand({**BASE, **changes})
    assert [record.message.partition(";")[0] for record in caplog.records] == ([sentence] if sentence else [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": [1, 2, 1]}, "seed: 1 occurs more than once in the list"),
        ({"seed": [1, 1.0]}, "seed: 1 occurs more than once in the list"),
        ({"draw": {"sparsity": [0.5, 0.5]}}, "draw.sparsity: 0.5 occurs more than once in the list"),
        ({"variants": {"a": {"train": {"epochs": [1, 1]}}}}, "train.epochs: 1 occurs more than once"),
        ({"seed": 2**32}, "seed: must be less than 4294967296"),
        ({"data": {"seed": -1}}, "data.seed: must be greater than or equal to 0, not -1"),
    ],
)
def test_a_repeated_value_or_an_impossible_seed_is_a_mistake(changes, message):
    """A seed that is run once but counts twice would halve the variance."""
    with pytest.raises(RecipeError, match=message):
        expand({"model": "m", "task": "rte", "search": {"method": "magnitude"}, **changes})
