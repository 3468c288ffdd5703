"""Which weights are chosen, and what AdamW does with the choice. (ROSE, §3)"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch.optim import AdamW
from transformers import PreTrainedModel

from tests.tiny import MODEL_TYPES, tiny, token_ids
from tests.training.toy import random_mask, same_weights
from tombola.errors import TombolaError
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.training.selective import Candidates, DropoutRisk, Selection, SelectiveAdamW, TwoDraws
from tombola.training.selective.freezing import WINDOWS, record, table
from tombola.training.selective.masks import within

ADAMW = {"lr": 1e-2, "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1}


def dropping(seed: int = 0, **overrides: float) -> PreTrainedModel:
    return tiny(
        "bert",
        num_labels=2,
        seed=seed,
        hidden_dropout_prob=0.3,
        attention_probs_dropout_prob=0.3,
        **overrides,
    ).train()


def a_batch(seed: int = 0, size: int = 6) -> dict[str, torch.Tensor]:
    return {"input_ids": token_ids(size, 7, seed), "labels": torch.arange(size) % 2}


def selective(
    model: PreTrainedModel, selection: Selection, summed: bool = False, **adamw: object
) -> tuple[SelectiveAdamW, TwoDraws | CrossEntropy]:
    candidates = Candidates(model)
    risk = DropoutRisk(candidates, selection, summed) if selection.two_passes else None
    optimizer = SelectiveAdamW(model.parameters(), candidates, selection, risk=risk, **{**ADAMW, **adamw})
    return optimizer, TwoDraws(CrossEntropy(), risk) if risk else CrossEntropy()


def run(model: PreTrainedModel, optimizer: torch.optim.Optimizer, objective: object, steps: int) -> None:
    torch.manual_seed(0)
    for step in range(steps):
        objective.step(model, a_batch(step), lambda loss: loss.backward())
        optimizer.step()
        optimizer.zero_grad()


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-50, 50), min_size=1, max_size=40),
    bounds=st.tuples(st.integers(0, 100), st.integers(0, 100)),
)
def test_quantiles_are_inclusive_and_linear(values: list[int], bounds: tuple[int, int]) -> None:
    lower, upper = sorted(bounds)
    array = np.array(values, dtype=np.float64)
    low, high = np.percentile(array, [lower, upper], method="linear")
    slack = 1e-9  # numpy's interpolation may miss a value by a rounding error
    expected = (array >= low - slack) & (array <= high + slack)
    assert within(torch.tensor(array), lower, upper).tolist() == expected.tolist()


@pytest.mark.parametrize("upper", [0, 30, 40, 60, 70, 75, 80, 85, 90, 100])
def test_of_96_tensors_so_many_are_kept(upper: int) -> None:
    risks = torch.rand(96, generator=torch.Generator().manual_seed(upper))
    assert within(risks, 0, upper).sum() == math.floor(upper / 100 * 95) + 1


def test_roberta_with_12_layers_has_96_candidates() -> None:
    places = Candidates(tiny("roberta", num_hidden_layers=12)).places
    assert len(places) == 96
    assert {layer for layer, _ in places} == set(range(12))
    assert sum("LayerNorm" in kind for _, kind in places) == 24


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_candidates_are_weights_of_the_layers_alone(model_type: str) -> None:
    model = tiny(model_type)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = [names[id(weight)] for weight in Candidates(model).weights]
    assert found
    assert all(
        name.endswith(".weight") and "embed" not in name and "classifier" not in name for name in found
    )


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.parametrize("kind", ["second", "random", "first", "ensemble"])
def test_with_nothing_left_out_it_is_adamw_bit_for_bit(kind: str, elementwise: bool, fused: bool) -> None:
    chosen, plain = dropping(), dropping()
    optimizer, objective = selective(chosen, Selection(kind=kind, elementwise=elementwise), fused=fused)
    run(chosen, optimizer, objective, 4)
    risk = DropoutRisk(Candidates(plain), Selection(kind="first"), summed=False)
    twice = TwoDraws(CrossEntropy(), risk) if optimizer.risk else CrossEntropy()
    run(plain, AdamW(plain.parameters(), **ADAMW, fused=fused, foreach=not fused), twice, 4)
    assert same_weights(chosen, plain)


@pytest.mark.parametrize("fused", [True, False])
def test_a_frozen_tensor_keeps_weight_and_momentum_and_v_goes_on(fused: bool) -> None:
    model = dropping()
    optimizer, objective = selective(model, Selection(kind="random", upper=50), fused=fused)
    run(model, optimizer, objective, 1)
    weights = optimizer.candidates.weights
    before = [
        (
            weight.detach().clone(),
            *(optimizer.state[weight][key].clone() for key in ("exp_avg", "exp_avg_sq")),
        )
        for weight in weights
    ]
    biases = model.base_model.encoder.layer[0].output.dense.bias.detach().clone()
    run(model, optimizer, objective, 1)
    frozen = [torch.equal(weight, old) for weight, (old, *_) in zip(weights, before, strict=True)]
    assert sum(frozen) == 16 - (math.floor(0.5 * 15) + 1)
    for weight, stays, (_, mean, square) in zip(weights, frozen, before, strict=True):
        state = optimizer.state[weight]
        assert torch.equal(state["exp_avg"], mean) == stays
        if stays:
            torch.testing.assert_close(state["exp_avg_sq"], 0.98 * square + 0.02 * mean**2)
        assert state["step"] == 2
    assert not torch.equal(model.base_model.encoder.layer[0].output.dense.bias, biases)


@pytest.mark.parametrize("share", [0.25, 0.8])
def test_a_share_of_an_update_follows_the_formula(share: float) -> None:
    weight, gradient, mean = (torch.randn(5, 4, dtype=torch.float64) for _ in range(3))
    square, rate, step = torch.rand(5, 4, dtype=torch.float64), 1e-2, 3
    mixed = share * gradient + (1 - share) * mean
    new_mean = 0.9 * mean + 0.1 * mixed
    new_square = 0.98 * square + 0.02 * mixed**2
    direction = (new_mean / (1 - 0.9**step)) / ((new_square / (1 - 0.98**step)).sqrt() + 1e-6)
    expected = weight - share * rate * direction - share * rate * 0.1 * weight

    model = dropping().double()
    optimizer, _ = selective(model, Selection(kind="second"))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    target = model.base_model.encoder.layer[0].attention.self.query.weight
    whole = torch.zeros_like(target)

    def put(values: torch.Tensor) -> torch.Tensor:
        filled = whole.clone()
        filled[:5, :4] = values
        return filled

    target.data = put(weight)
    target.grad = put(gradient)
    optimizer.state[target].update(exp_avg=put(mean), exp_avg_sq=put(square), step=torch.tensor(2.0))
    optimizer._shares = lambda rows: iter([torch.tensor(share, dtype=torch.float64)] * len(rows))
    optimizer.step()
    torch.testing.assert_close(target[:5, :4].detach(), expected)
    torch.testing.assert_close(optimizer.state[target]["exp_avg"][:5, :4], new_mean)
    torch.testing.assert_close(optimizer.state[target]["exp_avg_sq"][:5, :4], new_square)


def choice(model: PreTrainedModel, selection: Selection, change: Callable[[DropoutRisk], None]) -> list[bool]:
    risk = DropoutRisk(Candidates(model), selection, summed=False)
    change(risk)
    return [bool(chosen.all()) for chosen in risk.take()]


def scaled(risk: DropoutRisk, scale: float) -> DropoutRisk:
    risk.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return risk


def test_the_first_choice_does_not_depend_on_the_scale_of_the_divergence() -> None:
    model, batch = dropping(), a_batch()
    torch.manual_seed(3)
    logits = model(input_ids=torch.cat([batch["input_ids"]] * 2)).logits
    by_scale = [
        choice(
            model,
            Selection(kind="first", upper=60, lower=10),
            lambda risk, scale=scale: scaled(risk, scale).measure(logits, batch["labels"]),
        )
        for scale in (1.0, 65536.0, 1e-3)
    ]
    assert by_scale[0] == by_scale[1] == by_scale[2]
    assert 0 < sum(by_scale[0]) < 16


def test_first_keeps_the_tensors_that_answer_least_to_dropout() -> None:
    model, batch = dropping(), a_batch()
    torch.manual_seed(3)
    one, two = model(input_ids=torch.cat([batch["input_ids"]] * 2)).logits.log_softmax(-1).chunk(2)
    divergence = ((one.exp() - two.exp()) * (one - two)).sum(-1).mean()
    weights = Candidates(model).weights
    norms = torch.stack([g.norm() for g in torch.autograd.grad(divergence, weights)])
    expected = (norms <= torch.quantile(norms, 0.6)).tolist()
    torch.manual_seed(3)
    objective = TwoDraws(
        CrossEntropy(), DropoutRisk(Candidates(model), Selection(kind="first", upper=60), False)
    )
    objective.step(model, batch, lambda loss: loss.backward())
    assert [bool(chosen) for chosen in objective.risk.take()] == expected


def test_the_divergence_is_never_minimised() -> None:
    model, batch = dropping(), a_batch()
    risk = DropoutRisk(Candidates(model), Selection(kind="first", upper=60), summed=True)
    torch.manual_seed(3)
    loss = TwoDraws(CrossEntropy(), risk).step(model, batch, lambda loss: loss.backward())
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    torch.manual_seed(3)
    one, two = model(input_ids=torch.cat([batch["input_ids"]] * 2)).logits.chunk(2)
    plain = (CrossEntropy().of_logits(one, batch) + CrossEntropy().of_logits(two, batch)) / 2
    plain.backward()
    torch.testing.assert_close(loss, plain.detach())
    for ours, parameter in zip(gradients, (p for p in model.parameters() if p.grad is not None), strict=True):
        torch.testing.assert_close(ours, parameter.grad)


def test_regression_measures_the_squared_difference() -> None:
    model = tiny("bert", num_labels=1, hidden_dropout_prob=0.3).train()
    weights = Candidates(model).weights
    logits = model(input_ids=token_ids(8)).logits
    expected = torch.autograd.grad((logits[:4] - logits[4:]).square().sum(), weights, retain_graph=True)
    risk = DropoutRisk(Candidates(model), Selection(kind="first"), summed=True)
    risk.measure(logits, torch.rand(4))
    for ours, other in zip(risk._gradients, expected, strict=True):
        torch.testing.assert_close(ours, other)


def test_second_follows_the_formula_and_updates_all_in_the_first_step() -> None:
    model = dropping()
    optimizer, objective = selective(model, Selection(kind="second", upper=40))
    run(model, optimizer, objective, 1)
    assert optimizer.freezing().frozen == [[0.0] * 8] * 2
    objective.step(model, a_batch(9), lambda loss: loss.backward())
    weights = optimizer.candidates.weights
    risk = torch.stack(
        [(0.1 * w.grad.norm() / optimizer.state[w]["exp_avg"].norm() - 1).abs() for w in weights]
    )
    expected = risk <= torch.quantile(risk, 0.4)
    before = [weight.detach().clone() for weight in weights]
    optimizer.step()
    moved = [not torch.equal(weight, old) for weight, old in zip(weights, before, strict=True)]
    assert moved == expected.tolist()


@pytest.mark.parametrize("risk", [{"kind": "second"}, {"kind": "ensemble", "gamma": 0.0}])
def test_single_weights_are_compared_with_the_signs_of_gradient_and_momentum(risk: Any) -> None:
    """As released: |0.1·g/m − 1| of each weight; without signs a gradient against its momentum seems to agree."""
    model = dropping()
    optimizer, objective = selective(model, Selection(**risk, upper=30, elementwise=True))
    run(model, optimizer, objective, 2)
    objective.step(model, a_batch(9), lambda loss: loss.backward())
    weights = optimizer.candidates.weights
    before = [weight.detach().clone() for weight in weights]
    signed, unsigned = [], []
    for weight in weights:
        ratio = 0.1 * weight.grad / optimizer.state[weight]["exp_avg"]
        for chosen, values in ((signed, ratio), (unsigned, ratio.abs())):
            distance = (values - 1).abs()
            chosen.append(distance <= torch.quantile(distance, 0.3))
    optimizer.step()
    moved = [weight.detach() != old for weight, old in zip(weights, before, strict=True)]
    assert all(torch.equal(one, two) for one, two in zip(moved, signed, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(moved, unsigned, strict=True))


@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.parametrize(("gamma", "kind"), [(0.0, "second"), (1.0, "first")])
def test_an_ensemble_of_one_is_that_one(gamma: float, kind: str, elementwise: bool) -> None:
    mixed, alone = dropping(), dropping()
    both = Selection(kind="ensemble", gamma=gamma, upper=60, elementwise=elementwise)
    run(mixed, *selective(mixed, both), 4)
    optimizer, _ = selective(alone, Selection(kind=kind, upper=60, elementwise=elementwise))
    risk = DropoutRisk(Candidates(alone), Selection(kind="first"), summed=False)
    run(alone, optimizer, TwoDraws(CrossEntropy(), optimizer.risk or risk), 4)
    assert same_weights(mixed, alone)


def test_an_ensemble_takes_shares_between() -> None:
    model = dropping()
    optimizer, objective = selective(model, Selection(kind="ensemble", gamma=0.25, upper=50))
    run(model, optimizer, objective, 8)
    shares = {share for window in optimizer.freezing().windows for row in window.frozen for share in row}
    assert shares <= {0.0, 0.25, 0.75, 1.0}
    assert shares & {0.25, 0.75}


@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.parametrize("kind", ["first", "second", "random"])
def test_removed_weights_neither_move_nor_count(kind: str, elementwise: bool) -> None:
    model = dropping()
    mask = random_mask(model, kept=0.5)
    mask.apply(model)
    gone = model.base_model.encoder.layer[1].intermediate.dense.weight
    with torch.no_grad():
        gone.zero_()
    removed = {name: parameter == 0 for name, parameter in model.named_parameters()}
    selection = Selection(kind=kind, upper=60, elementwise=elementwise)
    optimizer, objective = selective(model, selection)
    torch.manual_seed(0)
    for step in range(3):
        objective.step(model, a_batch(step), lambda loss: loss.backward())
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                parameter.grad.masked_fill_(removed[name], 0)
        before = [weight.detach().clone() for weight in optimizer.candidates.weights]
        optimizer.step()
        optimizer.zero_grad()
    assert all((parameter[removed[name]] == 0).all() for name, parameter in model.named_parameters())
    assert all(weight is not gone for weight in optimizer.candidates.weights)
    weights = optimizer.candidates.weights
    moved = [(weight != old) & (old != 0) for weight, old in zip(weights, before, strict=True)]
    if elementwise:
        kept = [int((old != 0).sum()) for old in before]
        assert [int(m.sum()) for m in moved] == [math.floor(0.6 * (n - 1)) + 1 for n in kept]
    else:
        assert sum(bool(m.any()) for m in moved) == math.floor(0.6 * 14) + 1


def test_the_table_of_frozen_tensors_counts_kept_weights_alone() -> None:
    model = dropping()
    random_mask(model, kept=0.2).apply(model)
    optimizer, objective = selective(model, Selection(kind="random", upper=50, elementwise=True))
    objective.step(model, a_batch(), lambda loss: loss.backward())
    optimizer.step()
    assert list(optimizer.freezing().tensors().values()) == pytest.approx([0.5] * 16, abs=0.1)


def test_first_norms_are_over_kept_weights() -> None:
    model, batch = dropping(), a_batch()
    random_mask(model, kept=0.3).apply(model)
    logits = model(input_ids=torch.cat([batch["input_ids"]] * 2)).logits
    candidates = Candidates(model)
    gradients = torch.autograd.grad(logits.square().sum(), candidates.weights)
    norms = list(candidates.norms(gradients))
    for norm, gradient, weight in zip(norms, gradients, candidates.weights, strict=True):
        torch.testing.assert_close(norm, gradient[weight != 0].norm())


def test_lots_are_even_seeded_and_renewed_every_so_often() -> None:
    def frozen(seed: int) -> list[list[list[float]]]:
        model = dropping()
        optimizer, objective = selective(model, Selection(kind="random", upper=50, every=2), seed=seed)
        run(model, optimizer, objective, 8)
        return [window.frozen for window in optimizer.freezing().windows]

    ours = frozen(1)
    assert ours == frozen(1) != frozen(2)
    assert ours[0::2] == ours[1::2]
    assert len({str(window) for window in ours}) == 4
    assert all(sum(map(sum, window)) == 8 for window in ours)


def test_a_renewal_every_4_steps_measures_every_4_steps() -> None:
    model = dropping()
    optimizer, objective = selective(model, Selection(kind="first", upper=50, every=4))
    measured, add = [], optimizer.risk.add

    def counting(reduced: list[torch.Tensor]) -> None:
        measured.append(optimizer.steps)
        add(reduced)

    optimizer.risk.add = counting
    run(model, optimizer, objective, 9)
    assert measured == [0, 4, 8]
    windows = [window.frozen for window in optimizer.freezing().windows]
    assert windows[0] == windows[1] == windows[2] == windows[3] != windows[4]


def test_first_without_a_measure_is_refused() -> None:
    model = dropping()
    with pytest.raises(TombolaError, match="DropoutRisk"):
        SelectiveAdamW(model.parameters(), Candidates(model), Selection(kind="first"))
    optimizer, _ = selective(model, Selection(kind="first", upper=50))
    with pytest.raises(TombolaError, match="two passes"):
        run(model, optimizer, CrossEntropy(), 1)
    some, _ = selective(model, Selection(kind="second"))
    model.zero_grad()
    with pytest.raises(TombolaError, match="no gradient"):
        some.step()


def test_settings_are_checked() -> None:
    with pytest.raises(ValidationError, match="lower"):
        Selection(kind="first", upper=30, lower=40)


def test_the_history_of_freezing_stays_small_and_adds_up() -> None:
    history: list[list[float]] = []
    for step in range(1, 1001):
        record(history, step, [1.0, step % 2, 0.25])
    found = table([(0, "query"), (0, "key"), (1, "query")], 1000, history)
    assert len(found.windows) <= WINDOWS
    assert found.frozen == [[1.0, 0.5], [0.25, None]]
    assert found.tensors() == {"0/query": 1.0, "0/key": 0.5, "1/query": 0.25}
    assert [window.first for window in found.windows[1:]] == [
        window.last + 1 for window in found.windows[:-1]
    ]
    assert found.windows[-1].last == 1000
    assert all(window.frozen == [[1.0, 0.5], [0.25, None]] for window in found.windows)
