"""Phases and super tickets on numbers that can be checked by hand."""

import json

import pytest

from tests.results.builder import cell, result
from tombola.results.decisions import Phases
from tombola.results.doubts import NOT_LEARNED

SPLITS = ("validation", "test")
CURVES = {  # the means on test; on validation everything is the same but for the winning ticket at 50 %
    "winning": {0.1: 0.90, 0.3: 0.84, 0.5: 0.70, 0.7: 0.52},
    "random": {0.1: 0.86, 0.3: 0.70, 0.5: 0.55, 0.7: 0.51},
    "losing": {0.1: 0.80, 0.3: 0.60, 0.5: 0.52, 0.7: 0.50},
}
VARIANTS = {"winning": "kept best", "random": "control", "losing": "kept worst"}


def importance(**settings):
    return {"search": {"method": "importance", **settings}}


def cells(dense=0.88, curves=CURVES, splits=SPLITS, **changes):
    for seed, shift in ((1, -0.01), (2, 0.01)):
        yield cell("dense", dict.fromkeys(splits, dense + shift), None, seed, **changes)
        for order, points in curves.items():
            for sparsity, mean in points.items():
                scores = dict.fromkeys(splits, mean + shift)
                if (order, sparsity) == ("winning", 0.5) and "validation" in scores:
                    scores["validation"] = 0.95 + shift
                ticket = f"tickets/{VARIANTS[order]}-{sparsity}-{seed}"
                recipe = importance(order=order)
                yield cell(VARIANTS[order], scores, sparsity, seed, recipe=recipe, ticket=ticket, **changes)


def only(found):
    (phases,) = found.phases()
    return phases


def test_the_three_phases_by_the_order_in_the_recipe_of_each_cell():
    found = only(result(*cells()))
    assert (found.on, found.metric, found.axes) == ("test", "accuracy", {})
    assert found.dense.mean == pytest.approx(0.88)
    assert [point.phase for point in found.points] == ["I", "II", "II", "III"]
    assert [point.sparsity for point in found.points] == [0.1, 0.3, 0.5, 0.7]
    assert [point.remaining for point in found.points] == [0.95, 0.85, 0.75, 0.65]
    for order, curve in CURVES.items():
        assert [getattr(point, order).mean for point in found.points] == pytest.approx(list(curve.values()))
    assert found.points[0].losing.seeds == 2


def test_one_ticket_that_meets_a_target_is_no_curve():
    recipe = {**importance(), "draw": {"speedup": 2.0, "layout": "uniform"}}
    one = [cell("dense", {"test": 0.9}), cell("ticket", {"test": 0.8}, 0.5, recipe=recipe)]
    assert result(*one).phases() == []
    faster = {**importance(), "draw": {"speedup": 3.0, "layout": "uniform"}}
    more = result(*one, cell("ticket", {"test": 0.7}, 0.7, recipe=faster))
    assert [point.sparsity for point in only(more).points] == [0.5, 0.7]


def test_other_data_give_no_phases_beside_the_task_s_own():
    assert only(result(*cells(splits=("validation", "advglue_sst2")))).on == "validation"
    assert only(result(*cells(splits=("validation", "test", "advglue_sst2")))).on == "test"
    assert only(result(*cells(splits=("advglue_sst2",)))).on == "advglue_sst2"


def test_phases_are_kept_in_the_file(tmp_path):
    saved = result(*cells(), folder=tmp_path)
    kept = json.loads(saved.save().read_text())["phases"]
    assert [Phases.model_validate(one) for one in kept] == saved.phases() == saved.record.phases


def test_collapse_is_a_winning_mean_within_the_spread_of_random():
    spread = 0.02 / 2**0.5  # of two seeds 0.02 apart
    for gap, phase in ((0.9 * spread, "III"), (1.1 * spread, "II")):
        curves = {"winning": {0.5: 0.60 + gap}, "random": {0.5: 0.60}}
        assert only(result(*cells(curves=curves))).points[0].phase == phase


def test_without_random_tickets_nothing_is_called_a_collapse():
    (*_, last) = only(result(*cells(curves={"winning": CURVES["winning"]}))).points
    assert (last.random, last.phase) == (None, "II")


def test_the_super_ticket_is_chosen_on_one_split_and_reported_on_another():
    found = result(*cells())
    best = only(found).super_ticket
    assert (best.chosen_on, best.reported_on) == ("validation", "test")
    assert (best.sparsity, best.remaining) == (0.5, 0.75)
    assert best.chosen.mean == pytest.approx(0.95)
    assert best.reported.mean == pytest.approx(0.70)
    assert best.tickets == ["tickets/kept best-0.5-1", "tickets/kept best-0.5-2"]


def test_equal_means_are_phase_one_and_the_smallest_of_equals_is_super():
    winning = {0.1: (0.8, 0.9), 0.3: (0.85, 0.85)}
    found = [cell("dense", dict.fromkeys(SPLITS, value), None, seed) for seed, value in enumerate((0.8, 0.9))]
    found += [
        cell("kept best", dict.fromkeys(SPLITS, value), sparsity, seed, recipe=importance())
        for sparsity, values in winning.items()
        for seed, value in enumerate(values)
    ]
    phases = only(result(*found))
    assert [point.phase for point in phases.points] == ["I", "I"]
    assert phases.super_ticket.sparsity == 0.3


def test_the_dense_model_is_a_winning_ticket_too():
    assert only(result(*cells(dense=0.98))).super_ticket.sparsity == 0.0


def test_no_super_ticket_is_chosen_on_the_reported_split():
    """The released code's super tickets are chosen by hand on the split that is reported."""
    assert only(result(*cells(splits=("test", "reviews/test")))).super_ticket is None


def test_a_result_with_one_split_has_phases_but_no_super_ticket():
    tried = result(*cells(splits=("validation",)))
    assert only(tried).on == "validation"
    assert only(tried).super_ticket is None


def test_an_attack_is_no_data_set_for_the_super_ticket():
    tried = result(*cells(splits=("validation",), under={"deepwordbug": 0.3}))
    assert only(tried).on == "validation"
    assert only(tried).super_ticket is None
    both = result(*cells(under={"deepwordbug": 0.3}))
    assert only(both).super_ticket.reported_on == "test"


def test_each_task_has_its_own_curves_and_its_own_dense_model():
    both = result(*cells(task="reviews"), *cells(dense=0.5, task="reviews_product"))
    first, second = both.phases()
    assert (first.axes, second.axes) == ({"task": "reviews"}, {"task": "reviews_product"})
    assert second.dense.mean == pytest.approx(0.5)
    assert {point.phase for point in second.points} == {"I"}
    assert second.super_ticket.sparsity == 0.5


def test_curves_at_other_units_share_the_dense_model():
    found = [cell("dense", {"test": 0.9})]
    found += [
        cell("kept best", {"test": 0.8}, 0.5, recipe=importance(), **{"search.units": units})
        for units in ("head", "head+ffn")
    ]
    first, second = result(*found).phases()
    assert (first.axes, second.axes) == ({"search.units": "head"}, {})
    assert len(first.points) == len(second.points) == 1


def test_a_random_ticket_is_the_mean_over_all_random_masks():
    found = [cell("dense", {"test": 0.9}), cell("kept best", {"test": 0.8}, 0.5, recipe=importance())]
    found += [
        cell(
            "control",
            {"test": value},
            0.5,
            recipe=importance(order="random"),
            **{"search.mask_number": number},
        )
        for number, value in enumerate((0.7, 0.5, 0.6))
    ]
    by_layer = importance(order="random", preserve_layer_ratio=True)
    found.append(cell("control by layer", {"test": 0.1}, 0.5, recipe=by_layer))
    (point,) = only(result(*found)).points
    assert (point.random.mean, point.random.seeds) == (pytest.approx(0.6), 3)


def test_tickets_that_are_retrained_differently_make_curves_of_their_own():
    found = [cell("dense", {"test": 0.9})]
    found += [
        cell("kept best", {"test": value}, 0.5, recipe=importance(), **{"retrain.epochs": epochs})
        for epochs, value in ((3, 0.7), (6, 0.8))
    ]
    phases = result(*found).phases()
    assert [one.axes for one in phases] == [{"retrain.epochs": 3}, {"retrain.epochs": 6}]
    assert [point.winning.mean for one in phases for point in one.points] == [0.7, 0.8]


def test_damaged_tickets_and_other_searches_are_no_part_of_it():
    scores = dict.fromkeys(SPLITS, 0.99)
    others = [
        cell("shuffled", scores, 0.1, recipe={**importance(), "retrain": {"control": {"kind": "shuffle"}}}),
        cell("perturbed", scores, 0.1, recipe=importance()).model_copy(
            update={
                "recipe": {**cell("x", scores, 0.1, recipe=importance()).recipe, "draw": {"perturb": 0.5}}
            }
        ),
        cell("magnitude", scores, 0.1),
    ]
    assert result(*others, *cells()).phases() == result(*cells()).phases()


def test_a_result_without_winning_tickets_has_no_phases():
    found = result(cell("dense", {"test": 0.9}), cell("kept best", {"test": 0.8}, 0.5))
    assert found.phases() == []


def test_a_dense_model_that_has_not_learned_has_no_phases_to_compare_with():
    found = only(result(*cells(dense=0.5, constants=dict.fromkeys(SPLITS, 0.5))))
    assert found.note == NOT_LEARNED
    assert {point.phase for point in found.points} == {None}
    assert found.super_ticket is None
