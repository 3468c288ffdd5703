"""When a ticket is as good as the dense model, and when there is nothing to match."""

import pytest

from tests.results.builder import cell, measured, result, score
from tombola.cli.tables import matching_lines
from tombola.results.doubts import AT_CHANCE, NOT_LEARNED, SAME_SCORES

DENSE = [cell("dense", value, seed=seed) for seed, value in enumerate((0.80, 0.82, 0.84))]


def test_the_sparsest_within_one_deviation_and_the_sparsest_not_below():
    tickets = [
        ("imp", 0.3, 0.83),
        ("imp", 0.5, 0.82),
        ("imp", 0.7, 0.801),
        ("imp", 0.9, 0.7),
        ("random", 0.3, 0.7),
    ]
    cells = [cell(name, value, sparsity, seed) for name, sparsity, value in tickets for seed in range(3)]
    imp, random = result(*DENSE, *cells).matching("validation")
    assert (imp.within, imp.strict, imp.note) == (0.7, 0.5, None)
    assert (random.within, random.strict) == (None, None)


def test_equal_means_match_strictly_even_if_their_last_digits_differ():
    dense, imp = (0.8, 0.9), (0.85, 0.85)  # (0.8 + 0.9) / 2 is 0.8500000000000001
    cells = [cell("dense", value, seed=seed) for seed, value in enumerate(dense)]
    cells += [cell("imp", value, 0.5, seed) for seed, value in enumerate(imp)]
    (found,) = result(*cells).matching("validation")
    assert found.strict == 0.5
    denser = [cell("imp", value, 0.3, seed) for seed, value in enumerate(dense)]
    assert [one["point"]["draw.sparsity"] for one in result(*cells[2:], *denser).frontier()] == [0.5]


def test_a_ticket_is_compared_with_the_dense_model_of_its_own_task():
    cells = [
        cell("dense", 0.9, task="easy"),
        cell("dense", 0.6, task="hard"),
        cell("imp", 0.7, 0.5, task="easy"),
        cell("imp", 0.7, 0.5, task="hard"),
    ]
    easy, hard = result(*cells).matching("validation")
    assert (easy.baseline_key, easy.strict) == ({"task": "easy"}, None)
    assert (hard.baseline_key, hard.strict) == ({"task": "hard"}, 0.5)


def test_with_several_dense_models_the_lines_say_which_a_ticket_matches():
    found = result(cell("dense, std", 0.9), cell("dense, poe", 0.7), cell("mask", 0.75, 0.5))
    assert [(one.dense, one.strict) for one in found.matching("validation")] == [
        ("dense, std", None),
        ("dense, poe", 0.5),
    ]
    assert matching_lines(found) == [
        "mask: no ticket matches dense, std on validation",
        "mask: matches dense, poe on validation up to 50 % sparsity; not below its mean up to 50 %",
    ]


def test_dense_models_of_which_the_same_is_said_share_a_sentence():
    cells = [cell("plain", 0.9), cell("longer", 0.95), cell("mask", 0.1, 0.5), cell("imp", 0.99, 0.5)]
    assert matching_lines(result(*cells)) == [
        "mask: no ticket matches plain · longer on validation",
        "imp: matches plain · longer on validation up to 50 % sparsity; not below its mean up to 50 %",
    ]


def test_the_lines_tell_how_much_faster_the_matching_ticket_is():
    cells = [cell("dense", 0.8, measured=measured()), cell("heads", 0.8, 0.5, measured=measured(1.42))]
    (line,) = matching_lines(result(*cells))
    assert line.endswith(
        "; 1.42 × as fast with batch 1 (1.37–1.47); 1.62 × as fast with batch 32 (1.57–1.67)"
    )


def test_seeds_that_score_the_same_are_decided_by_the_standard_error():
    dense = [cell("dense", 0.9, seed=seed) for seed in range(3)]  # a standard error of 0.03
    near, far = (
        [cell(name, value, 0.5, seed) for seed in range(3)] for name, value in (("near", 0.88), ("far", 0.86))
    )
    found = result(*dense, *near, *far)
    assert [(one.variant, one.within) for one in found.matching()] == [("near", 0.5), ("far", None)]
    assert {one.note for one in found.matching()} == {SAME_SCORES}
    assert "dense: all 3 seeds score the same on validation" in found.notes


def chance(variant, value, *rest, **changes):
    return cell(variant, value, *rest, constants={"validation": 0.5}, **changes)


@pytest.mark.parametrize(("value", "learned"), [(0.5, False), (0.59, False), (0.61, True)])
def test_a_dense_model_must_be_above_one_answer_to_all_by_more_than_chance(value, learned):
    found = result(chance("dense", value), chance("imp", value, 0.5))
    (one,) = found.matching()
    assert (one.strict is not None) == learned
    assert (one.note == NOT_LEARNED) == (not learned)
    assert (f"dense has not learned the task: {100 * value:.1f} % on validation, where a constant answer scores 50.0 %"
            in found.notes) == (not learned)  # fmt: skip
    assert (found.rows()[1]["matching"] is None) == (not learned)
    assert any(NOT_LEARNED in line for line in matching_lines(found)) == (not learned)


def test_a_dense_model_at_chance_on_other_data_alone_has_learned_its_task():
    scores, constants = {"validation": 0.9, "hans": 0.5}, {"validation": 0.5, "hans": 0.5}
    found = result(cell("dense", scores, constants=constants), cell("imp", scores, 0.5, constants=constants))
    assert found.matching("validation")[0].strict == 0.5
    assert (found.matching("hans")[0].strict, found.matching("hans")[0].note) == (None, AT_CHANCE)


def test_under_attack_nothing_matches_a_dense_model_that_has_not_learned():
    found = result(
        chance("dense", 0.5, under={"textfooler": 0.4}), chance("imp", 0.5, 0.5, under={"textfooler": 0.4})
    )
    assert found.matching("textfooler")[0].note == NOT_LEARNED


def test_tickets_that_give_one_answer_to_all_are_named_together():
    found = result(
        chance("dense", 0.9), *(chance("random", 0.5, sparsity) for sparsity in (0.5, 0.6, 0.7, 0.8))
    )
    assert found.notes == [
        "no better than a constant answer on validation: random · 50 % sparse; random · 60 % sparse; "
        "random · 70 % sparse; and 1 more"
    ]


def test_a_mask_that_empties_a_matrix_is_told_in_the_notes_and_the_decision():
    found = result(cell("dense", 0.9), cell("omp", 0.9, 0.9, emptied=["pooler.dense"]))
    assert found.notes == [
        "omp · 90 % sparse: the mask removes all of pooler.dense, so no signal passes there"
    ]
    assert found.matching()[0].note == "the ticket's mask removes all of pooler.dense"


def test_a_speedup_measured_on_a_busy_machine_is_told():
    found = result(cell("heads", 0.9, 0.5, measured=measured(1.4, busy="load 7 on 2 cores")))
    assert found.notes == ["the speed-up of heads · 50 % sparse is uncertain: load 7 on 2 cores"]


def test_speedups_that_are_uncertain_for_different_reasons_are_told_apart():
    sizes = measured(1.4)
    known = {size: one.model_copy(update={"busy": f"load {size}"}) for size, one in sizes.speedup.items()}
    found = result(cell("heads", 0.9, 0.5, measured=sizes.model_copy(update={"speedup": known})))
    assert found.notes == [
        "the speed-up of heads · 50 % sparse (batch 1) is uncertain: load 1",
        "the speed-up of heads · 50 % sparse (batch 32) is uncertain: load 32",
    ]


def test_nothing_matches_a_dense_model_that_an_attack_leaves_nothing():
    found = result(
        cell("dense", 0.9, under={"textfooler": 0.0}), cell("imp", 0.9, 0.8, under={"textfooler": 0.0})
    )
    (one,) = found.matching("textfooler")
    assert (one.within, one.strict) == (None, None)
    assert one.note == "the dense model gets nothing right under attack, so there is nothing to match"


def test_a_matching_ticket_that_gives_one_answer_to_all_is_called_so():
    known = {"validation": 0.5}
    found = result(
        cell("dense", score(0.66), constants=known), cell("imp", score(0.62, 20), 0.5, constants=known)
    )
    (one,) = found.matching()
    assert one.within == 0.5
    assert one.note == "the ticket is no better than a constant answer"


def test_rows_that_lack_seeds_are_named():
    found = result(
        *DENSE, *(cell("imp", 0.8 + seed / 100, 0.5, seed) for seed in range(3)), cell("imp", 0.9, 0.7, 1)
    )
    assert found.notes == ["fewer seeds than the 3 of other rows: imp · 70 % sparse (1)"]


def test_a_seed_that_failed_among_others_is_named():
    known = {"validation": 0.5}
    values = {1: 0.9, 2: 0.5, 3: 0.9}
    found = result(*(cell("dense", value, None, seed, constants=known) for seed, value in values.items()))
    assert found.notes == ["dense: seed 2 is no better than a constant answer on validation, of 3 seeds"]
