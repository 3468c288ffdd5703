"""Phases and super tickets on numbers that can be checked by hand."""

import json
from io import StringIO

import pytest
from rich.console import Console

from tombola.errors import TombolaError
from tombola.results.phases import phase_table, phases, places, super_ticket
from tombola.results.result import Result

SPLITS = ("validation", "test")
CURVES = {  # the means on test; on validation everything is the same but for the winning ticket at 50 %
    "winning": {0.1: 0.90, 0.3: 0.84, 0.5: 0.70, 0.7: 0.52},
    "random": {0.1: 0.86, 0.3: 0.70, 0.5: 0.55, 0.7: 0.51},
    "losing": {0.1: 0.80, 0.3: 0.60, 0.5: 0.52, 0.7: 0.50},
}


def recipe(**changes):
    return {
        "name": "r",
        "model": "minilm",
        "task": "reviews",
        "seed": [1, 2],
        "evaluate": {"on": list(SPLITS)},
        "draw": {"sparsity": [0.1, 0.3, 0.5, 0.7]},
        "search": {"method": "importance"},
        "variants": {
            "dense": {"search": None},
            "kept best": {},
            "control": {"search": {"order": "random"}},
            "kept worst": {"search": {"order": "losing"}},
        },
        **changes,
    }


VARIANTS = {"winning": "kept best", "random": "control", "losing": "kept worst"}


def cell(variant, seed, scores, sparsity=None, **axes):
    axes |= {} if sparsity is None else {"draw.sparsity": sparsity}
    mask = None
    if sparsity is not None:
        mask = {"weight_sparsity": sparsity, "total_sparsity": sparsity / 2, "parameters": 1000}
    kept = {
        on: {"accuracy": {"value": value, "stderr": 0.01, "n": 100, "method": "binomial"}}
        for on, value in scores.items()
    }
    ticket = None if sparsity is None else f"tickets/{variant}-{sparsity}-{seed}"
    return {
        "variant": variant, "axes": {**axes, "seed": seed}, "seed": seed, "mask": mask, "scores": kept,
        "ticket": ticket,
    }  # fmt: skip


def cells(dense=0.88, curves=CURVES, splits=SPLITS, **axes):
    for seed, shift in ((1, -0.01), (2, 0.01)):
        yield cell("dense", seed, dict.fromkeys(splits, dense + shift), **axes)
        for order, points in curves.items():
            for sparsity, mean in points.items():
                scores = dict.fromkeys(splits, mean + shift)
                if (order, sparsity) == ("winning", 0.5) and "validation" in scores:
                    scores["validation"] = 0.95 + shift
                yield cell(VARIANTS[order], seed, scores, sparsity, **axes)


def result(content=None, found=None):
    return Result({"name": "r", "recipe": content or recipe(), "cells": list(found or cells())}, None)


def test_the_three_phases_by_the_order_that_the_recipe_says():
    found = phases(result())
    assert (found["on"], found["metric"]) == ("test", "accuracy")
    assert found["dense"]["mean"] == pytest.approx(0.88)
    assert [point["phase"] for point in found["points"]] == ["I", "II", "II", "III"]
    assert [point["sparsity"] for point in found["points"]] == [0.1, 0.3, 0.5, 0.7]
    assert [point["remaining"] for point in found["points"]] == [0.95, 0.85, 0.75, 0.65]
    for order, curve in CURVES.items():
        assert [point[order]["mean"] for point in found["points"]] == pytest.approx(list(curve.values()))
    assert found["points"][0]["losing"]["seeds"] == 2
    json.dumps(found, allow_nan=False)


def test_collapse_is_a_winning_mean_within_the_spread_of_random():
    spread = 0.02 / 2**0.5  # of two seeds 0.02 apart
    for gap, phase in ((0.9 * spread, "III"), (1.1 * spread, "II")):
        curves = {"winning": {0.5: 0.60 + gap}, "random": {0.5: 0.60}}
        assert phases(result(found=cells(curves=curves)), "test")["points"][0]["phase"] == phase


def test_without_random_tickets_nothing_is_called_a_collapse():
    (*_, last) = phases(result(found=cells(curves={"winning": CURVES["winning"]})))["points"]
    assert (last["random"], last["phase"]) == (None, "II")


def test_the_super_ticket_is_chosen_on_one_split_and_reported_on_another():
    best = super_ticket(result(), "validation", "test")
    assert (best.sparsity, best.remaining) == (0.5, 0.75)
    assert best.chosen["mean"] == pytest.approx(0.95)
    assert best.reported["mean"] == pytest.approx(0.70)
    assert best.tickets == ["tickets/kept best-0.5-1", "tickets/kept best-0.5-2"]
    assert super_ticket(result(), "test", "validation").sparsity == 0.1
    assert phases(result())["super_ticket"]["sparsity"] == 0.5


def test_the_dense_model_is_a_winning_ticket_too():
    assert super_ticket(result(found=cells(dense=0.99)), "validation", "test").sparsity == 0.0


@pytest.mark.parametrize("same", [("test", "test"), ("reviews/test", "test")])
def test_choosing_on_the_reported_split_is_refused_unless_asked_for(same):
    """The released code's super tickets are chosen by hand on the split that is reported."""
    tried = result(found=cells(splits=("test", "reviews/test")))
    with pytest.raises(TombolaError, match="same_split"):
        super_ticket(tried, *same)
    assert super_ticket(tried, *same, same_split=True).sparsity == 0.1


def test_a_result_with_one_split_has_phases_but_no_super_ticket():
    tried = result(found=cells(splits=("validation",)))
    assert phases(tried)["on"] == "validation"
    assert phases(tried)["super_ticket"] is None
    with pytest.raises(TombolaError, match=r"evaluate\.on"):
        super_ticket(tried, "validation", "test")


def test_each_task_has_its_own_curves_and_its_own_dense_model():
    content = recipe(task=["reviews", "reviews_product"])
    found = [*cells(task="reviews"), *cells(dense=0.5, task="reviews_product")]
    both = result(content, found)
    assert places(both) == [{"task": "reviews"}, {"task": "reviews_product"}]
    assert phases(both, place=places(both)[1])["dense"]["mean"] == pytest.approx(0.5)
    assert {point["phase"] for point in phases(both, place=places(both)[1])["points"]} == {"I"}


def test_curves_at_other_units_share_the_dense_model():
    content = recipe(search={"method": "importance", "units": ["head", "head+ffn"]})
    content["variants"] = {"dense": {"search": None}, "kept best": {}}
    found = [cell("dense", 1, {"test": 0.9})]
    found += [cell("kept best", 1, {"test": 0.8}, 0.5, **{"search.units": u}) for u in ("head", "head+ffn")]
    found = result(content | {"seed": [1, 2]}, found)
    assert places(found) == [{"search.units": "head"}, {}]
    assert len(phases(found)["points"]) == 1


def test_damaged_tickets_and_other_searches_are_no_part_of_it():
    content = recipe()
    content["variants"] |= {
        "shuffled": {"retrain": {"control": {"kind": "shuffle"}}},
        "magnitude": {"search": {"method": "magnitude"}},
    }
    others = [cell(name, 1, dict.fromkeys(SPLITS, 0.99), 0.1) for name in ("shuffled", "magnitude")]
    assert phases(result(content, [*others, *cells()])) == phases(result())


def test_a_result_without_winning_tickets_has_no_phases():
    content = recipe(search={"method": "magnitude"}, variants={"dense": {"search": None}, "kept best": {}})
    found = [cell("dense", 1, {"test": 0.9}), cell("kept best", 1, {"test": 0.8}, 0.5)]
    assert phases(result(content, found)) is None
    with pytest.raises(TombolaError, match="winning"):
        super_ticket(result(content, found), "validation", "test")


def test_the_table_names_phases_and_the_super_ticket():
    written = StringIO()
    Console(width=100, file=written).print(phase_table(result()))
    for part in ("50%", "75.0%", "70.0% ± 1.4", "III", "super ticket, chosen on validation: 50%"):
        assert part in written.getvalue()
