"""Claims are judged by the interval of the paired difference."""

import pytest
from scipy import stats

import tombola
from tests.results.builder import cell, result
from tombola.cli.tables.decisions import claim_lines
from tombola.evaluation.scores import DELTA, Score
from tombola.recipe.claims import Claim
from tombola.report.gathering import combine
from tombola.results.claims import write_judgement
from tombola.results.result import Result


def judged(*cells, **claim):
    claim = {"variant": "imp", "over": "random", **claim}
    return result(*cells, claims={"c": Claim(**claim)}).claims()


def runs(variant, *values, sparsity=0.5, **changes):
    return [cell(variant, value, sparsity, seed, **changes) for seed, value in enumerate(values, 1)]


BETTER = [*runs("imp", 0.80, 0.82, 0.81), *runs("random", 0.70, 0.73, 0.71)]


def test_the_interval_is_students_over_the_seeds_own_differences():
    (one,) = judged(*BETTER)
    low, high = stats.t.interval(0.95, 2, *_mean_and_error([0.10, 0.09, 0.10]))
    assert (one.difference.low, one.difference.high) == pytest.approx((low, high))
    assert (one.verdict, one.difference.seeds, one.metric) == ("holds", 3, "accuracy")
    assert one.axes == {"draw.sparsity": 0.5}


def _mean_and_error(values):
    return stats.tmean(values), stats.sem(values)


@pytest.mark.parametrize(
    ("by", "verdict"), [(0, "holds"), (-1, "holds"), (9.6, "not shown"), (12, "does not hold")]
)
def test_the_whole_interval_must_be_above_what_is_claimed(by, verdict):
    (one,) = judged(*BETTER, by=by)
    assert one.verdict == verdict


def test_a_lower_perplexity_is_the_better_one():
    cells = [
        *runs("imp", *({"validation": {"perplexity": score_of(value)}} for value in (20.0, 20.5))),
        *runs("random", *({"validation": {"perplexity": score_of(value)}} for value in (30.0, 30.4))),
    ]
    (one,) = judged(*cells, by=5)
    assert (one.verdict, one.difference.mean) == ("holds", pytest.approx(-9.95))
    assert ", claimed: at most −5; 2 seeds" in write_judgement(one)
    (one,) = judged(*cells, by=15)
    assert one.verdict == "does not hold"


def test_a_demand_on_a_lower_share_is_in_points(monkeypatch):
    monkeypatch.setattr("tombola.results.claims.lower_is_better", lambda name: True)
    (one,) = judged(*BETTER, by=5)
    assert ", claimed: at most −5 points; 3 seeds" in write_judgement(one)


def score_of(value):
    return Score(value, 0.1, 60, DELTA)


def test_every_grid_point_gets_a_verdict_unless_the_claim_names_one():
    cells = [*BETTER, *runs("imp", 0.6, 0.5, 0.7, sparsity=0.9), *runs("random", 0.6, 0.6, 0.6, sparsity=0.9)]
    assert [one.verdict for one in judged(*cells)] == ["holds", "not shown"]
    (one,) = judged(*cells, at={"draw.sparsity": 0.9})
    assert one.axes == {"draw.sparsity": 0.9}


def test_a_ticket_is_compared_with_the_dense_model_at_its_own_size():
    dense = runs("dense", 0.81, 0.82, 0.81, sparsity=None)
    (one,) = judged(*BETTER, *dense, over="dense", by=-2.5, at={"draw.sparsity": 0.5})
    assert (one.verdict, one.axes) == ("holds", {"draw.sparsity": 0.5})
    (one,) = judged(*BETTER, *dense, variant="dense", over="imp")
    assert one.axes == {"draw.sparsity": 0.5}


def test_attacks_can_be_claimed_about():
    cells = [*runs("imp", 0.8, under={"textfooler": 0.4}), *runs("random", 0.8, under={"textfooler": 0.1})]
    (one,) = judged(*cells, on="textfooler")
    assert (one.verdict, one.on) == ("holds", "textfooler")
    (one,) = judged(*cells)
    assert (one.verdict, one.on) == ("not shown", "validation")


def test_a_claim_without_scores_is_not_tested_and_says_so():
    found = result(*runs("imp", 0.8), claims={"c": Claim(variant="imp", over="random")})
    assert [one.verdict for one in found.claims()] == ["not tested"]
    assert claim_lines(found) == [
        "claim c: not tested; there are no scores for imp against random on validation"
    ]


def test_the_sentence_has_the_difference_its_interval_the_demand_and_the_seeds():
    claim = Claim(variant="imp", over="random", by=-1)
    (line,) = claim_lines(result(*BETTER, claims={"IMP loses nothing": claim}))
    assert line == (
        "claim IMP loses nothing: holds; imp against random on validation, sparsity 0.5: "
        "+9.7 points, 95 %: +8.2 to +11.1, claimed: at least −1 points; 3 seeds"
    )


def test_results_on_one_page_keep_their_own_claims(tmp_path):
    claims = {"c": Claim(variant="imp", over="random")}
    worse = [
        cell(variant, {"test": value, "validation": 0.9 - value}, 0.5, seed)
        for variant, values in (("imp", (0.5, 0.5)), ("random", (0.8, 0.81)))
        for seed, value in enumerate(values)
    ]
    one = result(*BETTER, name="one", claims=claims)
    two = result(*worse, name="two", claims=claims, folder=tmp_path)
    both = combine({"one": one, "two": two})
    assert {found.claim: (found.verdict, found.on) for found in both.claims()} == {
        "one: c": ("holds", "validation"),
        "two: c": ("does not hold", "test"),
    }


def test_a_run_judges_its_claims_and_stores_the_verdicts(world, tmp_path):
    recipe = world.recipe(
        train={"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16},
        seed=[1, 2],
        search={"method": "magnitude"},
        draw={"sparsity": [0.25, 0.5]},
        evaluate={"on": ["validation"]},
        variants={"dense": {"search": None}, "omp": {}},
        claims={"loses no more than everything": {"variant": "omp", "over": "dense", "by": -101}},
    )
    ran = tombola.run(recipe, store=tmp_path / "store", output=tmp_path / "run")
    assert [one.verdict for one in ran.claims()] == ["holds", "holds"]
    assert Result.load(ran.folder).record.judgements == ran.claims()
    again = tombola.study(recipe, store=tmp_path / "store", output=tmp_path / "study")
    assert again.record.stages.run_now == 0
    assert again.claims() == ran.claims()
