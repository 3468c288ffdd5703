"""Statistics over seeds and the matching decision, on numbers that can be checked by hand."""

import statistics

import pytest

from tombola.cli.tables import matching_lines
from tombola.errors import TombolaError
from tombola.pipeline.transferring import transfer_matrix
from tombola.results.result import Result


def cell(variant, score, sparsity=0.0, seed=1, **axes):
    mask = (
        {"weight_sparsity": sparsity, "total_sparsity": sparsity / 2, "parameters": 1000}
        if sparsity
        else None
    )
    if sparsity:
        axes["draw.sparsity"] = sparsity
    scores = {"validation": {"accuracy": {"value": score, "stderr": 0.02, "n": 100, "method": "binomial"}}}
    return {"variant": variant, "axes": {**axes, "seed": seed}, "seed": seed, "mask": mask, "scores": scores}


def result(*cells):
    return Result({"name": "r", "cells": list(cells)}, None)


DENSE = [cell("dense", score, seed=seed) for seed, score in enumerate((0.80, 0.82, 0.84))]


def test_means_and_deviations_over_seeds():
    (row,) = result(*DENSE).summaries()
    assert row.seeds == 3
    assert row.scores["validation"]["mean"] == pytest.approx(0.82)
    assert row.scores["validation"]["spread"] == pytest.approx(statistics.stdev([0.80, 0.82, 0.84]))
    assert row.scores["validation"]["low"] == pytest.approx(0.82 - 4.302653 * 0.02 / 3**0.5, abs=1e-5)


def test_one_seed_has_its_standard_error():
    (row,) = result(DENSE[0]).summaries()
    assert row.scores["validation"]["spread"] == 0.02


def test_the_matching_ticket_is_the_sparsest_within_one_deviation_and_strictly_the_sparsest_not_below():
    tickets = [
        ("imp", 0.3, 0.83),
        ("imp", 0.5, 0.82),
        ("imp", 0.7, 0.801),
        ("imp", 0.9, 0.70),
        ("random", 0.3, 0.70),
    ]
    cells = [
        cell(variant, score, sparsity, seed) for variant, sparsity, score in tickets for seed in range(3)
    ]
    imp, random = result(*DENSE, *cells).matching("validation")
    assert (imp.within, imp.strict) == (0.7, 0.5)
    assert (random.within, random.strict) == (None, None)


def test_a_ticket_is_compared_with_the_dense_model_of_its_own_task():
    cells = [
        cell("dense", 0.9, task="easy"),
        cell("dense", 0.6, task="hard"),
        cell("imp", 0.7, 0.5, task="easy"),
        cell("imp", 0.7, 0.5, task="hard"),
    ]
    easy, hard = result(*cells).matching("validation")
    assert (easy.place, easy.strict) == ({"task": "easy"}, None)
    assert (hard.place, hard.strict) == ({"task": "hard"}, 0.5)


def test_with_several_dense_models_it_is_said_which_a_ticket_matches():
    cells = [cell("dense, std", 0.9), cell("dense, poe", 0.7), cell("mask", 0.75, 0.5)]
    found = result(*cells)
    assert [(one.dense, one.strict) for one in found.matching("validation")] == [
        ("dense, std", None),
        ("dense, poe", 0.5),
    ]
    told = matching_lines(found)
    assert told[0] == "mask: no ticket matches dense, std on validation"
    assert told[1].startswith("mask: matches dense, poe on validation up to 50%")


def test_dense_models_of_which_the_same_is_said_share_a_sentence():
    cells = [cell("plain", 0.9), cell("longer", 0.95), cell("mask", 0.1, 0.5), cell("imp", 0.99, 0.5)]
    assert matching_lines(result(*cells)) == [
        "mask: no ticket matches plain · longer on validation",
        "imp: matches plain · longer on validation up to 50%; not below its mean up to 50%",
    ]


def test_the_transfer_matrix_is_score_less_dense_and_counts_wins_over_the_own_mask():
    scores = {("a", "a"): 0.8, ("a", "b"): 0.71, ("b", "a"): 0.7, ("b", "b"): 0.7}
    cells = [cell("dense", 0.9, task="a"), cell("dense", 0.75, task="b")]
    cells += [cell("transferred", s, 0.7, task=t, **{"search.task": src}) for (src, t), s in scores.items()]
    matrix = transfer_matrix(result(*cells), "validation")
    assert (matrix.sources, matrix.targets) == (["a", "b"], ["a", "b"])
    assert matrix.difference[0] == pytest.approx([-0.1, -0.04])
    assert matrix.difference[1] == pytest.approx([-0.2, -0.05])
    assert (matrix.at_least_own, matrix.compared) == ({"a": 1, "b": 0}, {"a": 1, "b": 1})


def test_a_folder_without_results_is_told_so(tmp_path):
    with pytest.raises(TombolaError, match="holds no result"):
        Result.load(tmp_path)
