"""Statistics against scipy, closed forms and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tombola.results.statistics import holm, mcnemar, paired_t, pareto, sign_flips

pytestmark = pytest.mark.portable

shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_paired_t_is_scipys():
    first, second = np.array([0.8, 0.82, 0.79, 0.85]), np.array([0.78, 0.8, 0.8, 0.81])
    assert paired_t(first - second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_the_t_test_is_not_defined_for_differences_that_do_not_vary():
    for change in ([0.1], [0.1, 0.1], [0.83 - 0.80, 0.93 - 0.90], [300.1 - 300.0, 200.1 - 200.0], [0.0] * 3):
        assert paired_t(np.array(change)) is None


def test_sign_flips_are_exact_for_few_seeds():
    assert sign_flips(np.array([1.0, 2.0, 3.0])) == 2 / 8  # all plus and all minus
    assert sign_flips(np.array([3.0, -1.0, 1.0])) == pytest.approx(6 / 8)
    assert sign_flips(np.zeros(3)) == 1.0


def test_sign_flips_count_the_observed_signs_also_where_differences_are_large():
    perplexities = np.random.default_rng(0).normal(3e4, 1e4, size=(200, 5))
    assert {sign_flips(change) for change in perplexities if (change > 0).all()} == {2 / 2**5}


def test_sign_flips_by_chance_agree_with_scipy():
    change = np.random.default_rng(1).normal(0.4, 1, size=20)
    exact = stats.permutation_test((change,), np.mean, permutation_type="samples", n_resamples=9999, rng=2)
    assert sign_flips(change) == pytest.approx(exact.pvalue, abs=0.03)


def test_mcnemar_counts_only_where_models_differ():
    first = np.array([True] * 8 + [False] * 1 + [True] * 100)
    second = np.array([False] * 8 + [True] * 1 + [True] * 100)
    assert mcnemar(first[None], second[None]) == pytest.approx(2 * (1 + 9) / 2**9)
    assert mcnemar(first[None], first[None]) == 1.0


def test_mcnemar_counts_an_example_once_however_many_seeds_it_has():
    first = np.array([True] * 8 + [False] * 1 + [True] * 100)
    second = np.array([False] * 8 + [True] * 1 + [True] * 100)
    assert mcnemar(np.stack([first] * 5), np.stack([second] * 5)) == mcnemar(first[None], second[None])
    mixed = np.array([[True, False, True], [False, True, True], [True, True, True]])
    assert mcnemar(mixed, ~mixed) == pytest.approx(2 / 2**3)  # each of three examples for the first


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(shares)
def test_holm_never_lowers_p_and_keeps_the_order(values):
    corrected = holm(values)
    assert all(new >= old for new, old in zip(corrected, values, strict=True))
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=20))
def test_the_frontier_is_what_no_other_point_beats(points):
    kept = pareto(np.array(points))
    for index, one in enumerate(points):
        beaten = any(all(a >= b for a, b in zip(o, one, strict=True)) and o != one for o in points)
        assert kept[index] == (not beaten)
