"""Budgets: the schedules' published values, and what presses on the gates."""

import pytest
import torch
from pydantic import ValidationError

from tombola.gates import L0, Exact, Lagrangian
from tombola.gates.base import Moment


def test_the_cubic_schedule_has_the_published_values():
    budget = Exact(schedule="cubic", initial=0.7)
    epochs = [0, 1, 2, 3, 3.5, 4, 5]
    values = [budget.count_at(epoch / 5, 0.9) for epoch in epochs]
    assert values == pytest.approx([0.7, 0.7976, 0.8568, 0.8872, 0.8946, 0.8984, 0.9], abs=1e-9)


def test_the_fixed_schedule_has_the_requested_sparsity_throughout():
    assert [Exact().count_at(share, 0.6) for share in (0, 0.5, 1)] == [0.6] * 3


@pytest.mark.parametrize(
    "settings", [{"initial": 0.3}, {"stairs": 3}, {"schedule": "cubic", "initial": 0.3, "stairs": 3}]
)
def test_settings_of_another_schedule_are_refused(settings):
    with pytest.raises(ValidationError, match="only works with schedule: "):
        Exact(**settings)


def test_the_stepwise_schedule_has_equal_stairs_and_trains_on_each():
    budget = Exact(schedule="stepwise", initial=0.5, stairs=2)
    shares = [0, 0.33, 1 / 3, 0.66, 2 / 3, 0.99, 1]
    assert [budget.count_at(share, 0.9) for share in shares] == pytest.approx(
        [0.5, 0.5, 0.7, 0.7, 0.9, 0.9, 0.9]
    )


def test_the_weight_of_l0_is_counted_in_steps():
    # Regression: the released schedule compares with the number of entries of a dictionary, not of steps.
    budget = L0(weight=0.5)
    steps = (0, 99, 100, 250, 399, 400, 1000)
    weights = [budget.pressure(Moment(step / 1000, 0.7, multipliers(), never, never)) for step in steps]
    assert weights == pytest.approx([0, 0, 0, 0.25, 0.5 * 299 / 300, 0.5, 0.5])
    sudden = L0(begin=0.3, full=0.3)
    assert [sudden.ramp(share) for share in (0.0, 0.29, 0.3, 1.0)] == [0, 0, 1, 1]
    at_once = L0(weight=0.2, begin=0, full=0)
    assert at_once.pressure(Moment(0, 0.7, multipliers(), never, never)) == 0.2
    with pytest.raises(ValidationError, match="comes after"):
        L0(begin=0.5, full=0.4)


def test_a_relative_weight_follows_the_mean_square_of_the_losss_derivatives():
    budget, kept = L0(relative=2.0, begin=0.0, full=0.5), multipliers()
    found = [
        budget.pressure(Moment(1.0, 0.7, kept, never, lambda size=size: size)) for size in (3.0, 4.0, 5.0)
    ]
    squares = torch.tensor([9.0, 16.0, 25.0])
    assert found == pytest.approx([2 * float(squares[: n + 1].mean().sqrt()) for n in range(3)])
    assert (
        budget.pressure(Moment(1.0, 0.7, kept, never, lambda: float("inf"))) == found[-1]
    )  # overflowed in 16 bits
    for _ in range(200):
        last = budget.pressure(Moment(1.0, 0.7, kept, never, lambda: 7.0))
    assert last == pytest.approx(14.0, rel=1e-3)
    assert budget.pressure(Moment(0.25, 0.7, kept, never, lambda: 7.0)) == pytest.approx(7.0, rel=1e-3)


def test_l0_needs_no_sparsity_and_the_others_do():
    assert not L0().knows_sparsity
    assert Exact().knows_sparsity
    assert Lagrangian().knows_sparsity


def never() -> float:
    raise AssertionError("the budget does not need this")


def multipliers(*values):
    return torch.tensor(values or (0.0, 0.0, 0.0), dtype=torch.float64)


def test_lagrangian_multipliers_ascend_and_press_gates_shut_while_too_many_are_open():
    budget, kept = Lagrangian(rate=0.5, warmup=0.0), multipliers()
    first = budget.pressure(Moment(0.0, 0.7, kept, lambda: 1.0, never))
    assert kept.tolist() == pytest.approx([0.5 * -0.7, 0.5 * 0.49, -0.7])
    assert first == pytest.approx(0.35 + 2 * 0.245 * 0.7)
    assert budget.pressure(Moment(0.5, 0.7, kept, lambda: 1.0, never)) > first > 0
    assert budget.pressure(Moment(0.5, 0.7, multipliers(), lambda: 0.3, never)) == pytest.approx(0)
    assert budget.pressure(Moment(0.5, 0.7, multipliers(), lambda: 0.0, never)) < 0


def test_lagrangian_pressure_eases_before_the_target_is_reached():
    near = multipliers(0.0, 0.0, -0.10)
    assert (
        Lagrangian(warmup=0.0).pressure(Moment(0.5, 0.7, near, lambda: 0.35, never)) < 0
    )  # the gap closes by half in a step


def test_the_lagrangian_target_rises_ever_more_slowly():
    budget = Lagrangian(warmup=0.5)
    wanted = [budget.target_at(share, 0.8) for share in (0, 0.125, 0.25, 0.5, 1)]
    assert wanted == pytest.approx([0, 0.35, 0.6, 0.8, 0.8])
    assert Lagrangian(warmup=0).target_at(0, 0.8) == 0.8


def test_the_price_of_a_gate_is_given_in_one_way():
    assert L0(weight=0.5).weight == 0.5
    with pytest.raises(ValidationError, match="relative: is replaced by weight; remove one of them"):
        L0(weight=0.5, relative=2.0)
