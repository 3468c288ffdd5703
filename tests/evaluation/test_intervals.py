import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tombola.errors import TombolaError
from tombola.evaluation.intervals import (
    fewest_for_median,
    mean_interval,
    median_interval,
    paired_interval,
    wilson,
)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(trial: tuple[int, int]) -> None:
    successes, n = trial
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing() -> None:
    for successes, n in [(0, 0), (5, 4), (-1, 4)]:
        with pytest.raises(TombolaError, match="not a share"):
            wilson(successes, n)


@pytest.mark.parametrize(("lost", "gained"), [(0.02, 0.02), (0.05, 0.01), (0.2, 0.1)])
def test_paired_intervals_hold_the_true_difference_as_often_as_they_say(lost: float, gained: float) -> None:
    n = 40
    cases = stats.multinomial(n, [lost, gained, 1 - lost - gained])
    covered = {"paired": 0.0, "normal": 0.0}
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = cases.pmf([b, c, n - b - c])
            low, high = paired_interval(b, c, n)
            covered["paired"] += chance * (low <= gained - lost <= high)
            half = 1.96 * math.sqrt(b + c - (c - b) ** 2 / n) / n
            covered["normal"] += chance * (abs((c - b) / n - (gained - lost)) <= half)
    assert covered["paired"] > 0.94
    assert covered["paired"] >= covered["normal"]


def test_paired_intervals_of_many_trials_are_normal() -> None:
    change = np.repeat([-1, 1, 0], [300, 200, 9500])
    error = change.std(ddof=1) / 100
    expected = change.mean() - 1.96 * error, change.mean() + 1.96 * error
    assert paired_interval(300, 200, 10000) == pytest.approx(expected, abs=2e-5)
    assert paired_interval(0, 0, 1) == pytest.approx((-1.96 / 3, 1.96 / 3), abs=1e-4)


def test_mean_interval_is_the_t_interval() -> None:
    values = [0.91, 0.89, 0.93, 0.90]
    found = mean_interval(values, level=0.9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.mean, found.std) == pytest.approx((np.mean(values), np.std(values, ddof=1)))


def test_one_seed_has_no_spread() -> None:
    mean, *rest = mean_interval([0.9])
    assert mean == 0.9
    assert all(math.isnan(value) for value in rest)
    with pytest.raises(TombolaError, match="at least one value"):
        mean_interval([])


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (15, 4), (100, 40)])
def test_the_interval_of_a_median_has_the_ranks_of_the_sign_test(n: int, rank: int) -> None:
    found = median_interval([float(value) for value in np.random.default_rng(0).permutation(n)])
    assert found == (pytest.approx((n - 1) / 2), rank - 1, n - rank)
    assert 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5) >= 0.95 > 1 - 2 * stats.binom.cdf(rank, n, 0.5)


def test_the_interval_of_a_median_covers_it_as_often_as_promised() -> None:
    rng, covered = np.random.default_rng(0), 0
    for _ in range(2000):
        found = median_interval(rng.lognormal(sigma=2.0, size=15))
        covered += found.low <= 1.0 <= found.high
    assert covered / 2000 == pytest.approx(1 - 2 * stats.binom.cdf(3, 15, 0.5), abs=0.01)


def test_few_values_give_their_range() -> None:
    assert fewest_for_median() == 6
    assert fewest_for_median(0.99) == 8
    assert median_interval([3.0, 1.0, 2.0]) == (2, 1, 3)
    assert median_interval([3.0]) == (3, 3, 3)
    with pytest.raises(TombolaError, match="at least one value"):
        median_interval([])
