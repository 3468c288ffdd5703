import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tombola.errors import TombolaError
from tombola.evaluation.intervals import bootstrap, mean_interval, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(trial: tuple[int, int]) -> None:
    successes, n = trial
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing() -> None:
    for successes, n in [(0, 0), (5, 4), (-1, 4)]:
        with pytest.raises(TombolaError, match="not a share"):
            wilson(successes, n)


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


def test_bootstrap_of_a_mean_finds_its_standard_error() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, size=400)
    found = bootstrap(np.mean, values, resamples=2000)
    assert found.mean == values.mean()
    assert found.std == pytest.approx(values.std() / 20, rel=0.06)
    assert (found.low, found.high) == pytest.approx(
        (found.mean - 1.96 * found.std, found.mean + 1.96 * found.std), rel=0.02
    )
    assert found == bootstrap(np.mean, values, resamples=2000)


def test_bootstrap_keeps_rows_together() -> None:
    values = np.arange(50.0)
    assert bootstrap(lambda a, b: float(np.abs(a - b).max()), values, values).high == 0
