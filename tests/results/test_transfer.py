"""The transfer matrix, and the grid that it comes from."""

from io import StringIO

import pytest
from rich.console import Console

from tests.results.builder import cell, result
from tombola.cli.tables import transfer_table
from tombola.errors import RecipeError
from tombola.evaluation.scores import Score
from tombola.recipe.grid import expand
from tombola.results.transfer import transfer_grid

SCORES = {("a", "a"): 0.8, ("a", "b"): 0.71, ("b", "a"): 0.7, ("b", "b"): 0.7}


def transferred(scores, sparsity=0.7):
    return [
        cell("transferred", value, sparsity, task=target, **{"search.task": source})
        for (source, target), value in scores.items()
    ]


def dense():
    return [cell("dense", 0.9, task="a"), cell("dense", 0.75, task="b")]


def test_the_matrix_is_score_less_dense_and_counts_wins_over_the_own_mask():
    matrix = result(*dense(), *transferred(SCORES)).transfer()
    assert matrix.sources == ["a, sparsity 0.7", "b, sparsity 0.7"]
    assert matrix.targets == ["a", "b"]
    assert (matrix.on, matrix.metric) == ("validation", "accuracy")
    assert matrix.difference[0] == pytest.approx([-0.1, -0.04])
    assert matrix.difference[1] == pytest.approx([-0.2, -0.05])
    assert list(matrix.at_least_own.values()) == [1, 0]
    assert list(matrix.compared.values()) == [1, 1]


def test_another_sparsity_makes_other_rows_each_with_its_own_masks():
    sparser = {pair: value - 0.3 for pair, value in SCORES.items()}
    matrix = result(*dense(), *transferred(SCORES, 0.5), *transferred(sparser, 0.9)).transfer()
    assert matrix.sources == ["a, sparsity 0.5", "b, sparsity 0.5", "a, sparsity 0.9", "b, sparsity 0.9"]
    assert matrix.difference[2] == pytest.approx([-0.4, -0.34])
    assert list(matrix.at_least_own.values()) == [1, 0, 1, 0]


def test_a_cell_that_failed_is_missing_and_counts_for_nothing():
    rest = {pair: value for pair, value in SCORES.items() if pair != ("a", "b")}
    matrix = result(*dense(), *transferred(rest)).transfer()
    assert matrix.difference[0] == [pytest.approx(-0.1), None]
    assert list(matrix.compared.values()) == [0, 1]


def test_targets_with_different_metrics_have_differences_in_points():
    """As published: a matrix over GLUE has correlations and accuracies, all in hundredths."""

    def scored(variant, metric, value, *where, **axes):
        return cell(variant, {"validation": {metric: Score(value, 0.01, 100, "x")}}, *where, **axes)

    cells = [scored("dense", "mcc", 0.5, task="a"), scored("dense", "accuracy", 0.9, task="b")]
    cells += [
        scored("transferred", metric, value, 0.7, task=task, **{"search.task": "a"})
        for task, metric, value in (("a", "mcc", 0.4), ("b", "accuracy", 0.85))
    ]
    matrix = result(*cells).transfer()
    assert matrix.metric == ""
    console = Console(width=80, file=StringIO(), record=True)
    console.print(transfer_table(matrix))
    text = console.export_text()
    assert "−10.0  −5.0" in text
    assert "points of each target's metric on validation above the dense model" in text


def test_other_results_have_no_matrix():
    assert result(cell("dense", 0.9), cell("imp", 0.8, 0.5)).transfer() is None
    assert result(*transferred(SCORES)).transfer() is None


def test_the_grid_has_every_target_dense_and_under_every_mask():
    raw = {"model": "minilm", "task": "sst2", "search": {"method": "magnitude"}, "draw": {"sparsity": 0.7}}
    cells = expand(transfer_grid(raw, ["mnli", "sst2"], ["rte", "sst2"]))
    assert [(one.variant, one.axes) for one in cells] == [
        *(("dense", {"task": target}) for target in ("rte", "sst2")),
        *(
            ("transferred", {"task": target, "search.task": source})
            for target in ("rte", "sst2")
            for source in ("mnli", "sst2")
        ),
    ]


def test_claims_about_the_recipes_own_variants_go_with_them():
    variants = {"dense": {"search": None}, "imp": {}}
    claims = {"own": {"variant": "imp", "over": "dense"}, "kept": {"variant": "transferred", "over": "dense"}}
    raw = {"model": "minilm", "task": "rte", "search": {"method": "magnitude"}, "variants": variants}
    assert list(transfer_grid({**raw, "claims": claims}, ["mnli"], [])["claims"]) == ["kept"]


def test_a_malformed_search_is_left_to_the_checks_of_the_recipe():
    with pytest.raises(RecipeError, match="search: takes a mapping"):
        expand(transfer_grid({"model": "minilm", "task": "rte", "search": "magnitude"}, ["mnli"], []))


def test_tasks_are_the_recipe_s_where_none_are_given():
    raw = {"model": "minilm", "task": ["rte", "sst2"], "search": {"method": "magnitude", "task": "mnli"}}
    grid = transfer_grid(raw, [], [])
    assert (grid["task"], grid["search"]["task"]) == (["rte", "sst2"], ["mnli"])
    with pytest.raises(RecipeError, match="with a search"):
        transfer_grid({"model": "minilm", "task": "rte"}, [], [])
