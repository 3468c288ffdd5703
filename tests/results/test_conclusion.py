"""The sentence at the top of a page: it names the ticket, the sizes and the doubts."""

from tests.results.builder import cell, measured, result, score
from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.results.conclusion import conclude


def test_the_sparsest_matching_ticket_with_its_difference_speed_and_robustness():
    found = result(
        *(cell("dense", 0.80 + 0.01 * seed, None, seed, under={"textfooler": 0.2}) for seed in (1, 2, 3)),
        *(
            cell("imp", 0.805 + 0.01 * seed, 0.5, seed, under={"textfooler": 0.3}, measured=measured(1.4))
            for seed in (1, 2, 3)
        ),
        *(cell("imp", 0.4, 0.9, seed, under={"textfooler": 0.1}) for seed in (1, 2, 3)),
    )
    text = conclude(found)
    assert text.startswith(
        "The ticket imp with 50 % of the prunable weights removed matches the dense model on validation: "
        "accuracy 82.5 % against 82.0 % (+0.5 points, 95 %: "
    )
    assert "; 1.40 times as fast with batch 1; under textfooler 30.0 % against 20.0 %. 3 seeds." in text


def test_an_uncertain_speed_is_said_to_be_so_whatever_the_reason():
    few = measured(1.4, busy="too slow for more than 3 rounds: the interval is their range")
    found = result(cell("dense", 0.8), cell("imp", 0.8, 0.5, measured=few))
    assert "1.40 times as fast with batch 1 (uncertain)" in conclude(found)


def test_where_none_matches_it_names_the_one_that_comes_closest():
    found = result(cell("dense", 0.9), cell("imp", 0.7, 0.5), cell("random", 0.6, 0.5))
    assert conclude(found).startswith(
        "No ticket matches the dense model. The ticket imp with 50 % of the prunable weights removed comes closest"
    )
    assert conclude(found).endswith("One seed.")


def test_a_dense_model_that_has_not_learned_is_the_result():
    known = {"validation": 0.5}
    found = result(cell("dense", 0.5, constants=known), cell("imp", 0.5, 0.8, constants=known))
    assert conclude(found) == (
        "The dense model has not learned the task, so there is nothing to match (accuracy 50.0 % on "
        "validation). One seed."
    )


def test_a_correlation_is_never_in_percent():
    scores = [{"validation": {"pearson": Score(value, 0.02, 50, "Fisher z")}} for value in (-0.3, -0.347)]
    text = conclude(result(cell("dense", scores[0]), cell("imp", scores[1], 0.5)))
    assert "pearson −0.347 against −0.300 (−0.047, 95 %: −0.102 to +0.008)" in text


def test_doubts_about_the_ticket_are_part_of_the_sentence():
    known = {"validation": 0.5}
    found = result(
        cell("dense", score(0.66), constants=known),
        cell("imp", score(0.62, 20), 0.5, constants=known, emptied=["layer.0.query"]),
    )
    assert "matches" in conclude(found)
    assert "removes whole matrices" in conclude(found)
    assert "no better than a constant answer" in conclude(found)


def test_a_model_alone_and_the_verdict_of_a_compression():
    assert conclude(result(cell("dense", 0.9))) == (
        "dense: accuracy 90.0 % on validation (95 %: 82.6 to 94.5); no ticket to compare with. One seed."
    )
    assert conclude(result(cell("original", 0.9), verdict="The ticket: as asked.")) == "The ticket: as asked."


def test_several_dense_models_each_have_a_sentence():
    cells = [cell("dense", 0.9, task=task) for task in "abcd"] + [
        cell("imp", 0.9, 0.5, task=task) for task in "abcd"
    ]
    text = conclude(result(*cells))
    assert "task a: The ticket imp with 50 %" in text
    assert text.endswith("And 1 more below.")


def test_sharing_tells_the_average():
    cells = [
        cell(variant, value, sparsity, task=task).model_copy(update={"axes": {"task": task, "seed": 1}})
        for task, values in (("mnli", (0.8, 0.82)), ("rte", (0.6, 0.6)))
        for variant, sparsity, value in zip((WITHOUT, WITH), (None, 0.2), values, strict=True)
    ]
    text = conclude(result(*cells))
    assert text.startswith(
        "Sharing one encoder under tickets gives 71.0 % on average over 2 tasks, against 70.0 % without tickets "
        "(+1.0 points, 95 %: "
    )


def test_sharing_tells_the_controls():
    variants = {WITHOUT: (None, 0.7), WITH: (0.2, 0.72), RANDOM: (0.2, 0.69), ALONE: (None, 0.65)}

    def told(*names):
        cells = [
            cell(name, variants[name][1], variants[name][0], task=task).model_copy(
                update={"axes": {"task": task, "seed": 1}}
            )
            for task in ("mnli", "rte")
            for name in (WITHOUT, WITH, *names)
        ]
        return conclude(result(*cells))

    both = told(RANDOM, ALONE)
    assert "against 70.0 % without tickets (+2.0 points, 95 %: " in both
    assert "), 69.0 % with random tickets of the same size (+3.0 points, 95 %: " in both
    assert ") and 65.0 % for tasks fine-tuned alone; each ticket keeps 90 %" in both
    assert ") and 65.0 % for tasks fine-tuned alone; each" in told(ALONE)
    assert ") and 69.0 % with random tickets of the same size (+3.0" in told(RANDOM)


def test_single_models_of_several_runs_are_compared_with_the_first():
    cells = [
        cell("plain", 0.9, under={"textfooler": 0.1}, run="plain"),
        cell("small", 0.8, 0.5, under={"textfooler": 0.3}, run="two"),
    ]
    assert conclude(result(*cells)) == (
        "small · two against plain on validation: accuracy 80.0 % against 90.0 % (−10.0 points, 95 %: −19.8 to −0.2); "
        "under textfooler 30.0 % against 10.0 %. One seed."
    )


def test_single_models_of_different_tasks_are_not_compared_with_each_other():
    cells = [cell("dense", 0.9, task="sst2"), cell("dense", 0.8, task="mnli")]
    text = conclude(result(*cells))
    assert "against" not in text
    assert "task sst2: dense: accuracy 90.0 % on validation" in text
    assert "task mnli: dense: accuracy 80.0 % on validation" in text


def test_models_without_scores_or_without_common_data_have_a_sentence_too():
    unscored = [cell("dense", {}, run=name) for name in ("a", "b")]
    assert conclude(result(*unscored)) == "run a: No model was scored. run b: No model was scored."
    apart = [cell("dense", {name: 0.9}, run=name) for name in ("a", "b")]
    assert "run b: dense: accuracy 90.0 % on b" in conclude(result(*apart))


def test_nothing_has_no_sentence():
    assert conclude(result()) == ""
