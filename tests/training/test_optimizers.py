"""The optimizers against their formulas."""

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from tests.tiny import tiny
from tests.training.toy import same_weights, toy_train
from tombola.errors import RecipeError
from tombola.foundations.settings import checked
from tombola.training import TrainSettings
from tombola.training.optimizers import AdamaxW, optimizer_of


def test_adamax_decays_weights_not_gradients() -> None:
    weight = nn.Parameter(torch.tensor([2.0, -1.0]))
    optimizer = AdamaxW([weight], lr=0.1, weight_decay=0.5, foreach=True)
    weight.grad = torch.tensor([0.3, 0.0])
    optimizer.step()
    # Adamax' first step is lr * g / (|g| + eps); the decay multiplies by 1 - 0.1 * 0.5 before it.
    torch.testing.assert_close(weight.detach(), torch.tensor([2.0 * 0.95 - 0.1, -0.95]))
    assert optimizer.param_groups[0]["weight_decay"] == 0.5


def gradients(steps: int = 6) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [[torch.randn(shape, generator=generator) for shape in ((3, 4), (5,))] for _ in range(steps)]


def test_adamax_without_bias_correction_is_the_formula_of_the_release() -> None:
    """w ← (1 − lr·wd)·w − lr·m/u, where nothing makes up for m starting at zero."""
    weights = [nn.Parameter(torch.ones_like(gradient)) for gradient in gradients()[0]]
    plain = [weight.detach().clone() for weight in weights]
    means, largest = ([torch.zeros_like(weight) for weight in plain] for _ in range(2))
    options = {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.1, "foreach": True}
    optimizer = AdamaxW(weights, bias_correction=False, **options)
    for step in gradients():
        for index, (weight, gradient) in enumerate(zip(weights, step, strict=True)):
            weight.grad = gradient.clone()
            means[index] = 0.9 * means[index] + 0.1 * gradient
            largest[index] = torch.maximum(0.99 * largest[index], gradient.abs() + 1e-6)
            plain[index] = plain[index] - 0.01 * (means[index] / largest[index] + 0.1 * plain[index])
        optimizer.step()
    for weight, wanted in zip(weights, plain, strict=True):
        torch.testing.assert_close(weight.detach(), wanted)


def test_the_first_uncorrected_step_is_a_tenth_of_the_corrected() -> None:
    moved = []
    for corrected in (True, False):
        weight = nn.Parameter(torch.zeros(3))
        optimizer = AdamaxW([weight], lr=0.1, foreach=True, bias_correction=corrected)
        weight.grad = torch.tensor([1.0, -2.0, 3.0])
        optimizer.step()
        moved.append(weight.detach().clone())
    torch.testing.assert_close(moved[1], 0.1 * moved[0])


def test_a_weight_without_gradient_is_left_alone() -> None:
    """Neither the decay nor the moments of a head whose task did not take its turn."""
    used, idle = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = AdamaxW([used, idle], lr=0.1, weight_decay=0.5, foreach=True, bias_correction=False)
    used.grad = torch.ones(2)
    optimizer.step()
    assert torch.equal(idle, torch.ones(2))
    assert not torch.equal(used, torch.ones(2))
    assert idle not in optimizer.state


def test_bias_correction_is_a_setting_of_adamax_alone(tmp_path: Path) -> None:
    assert optimizer_of(TrainSettings(optimizer="adamax"))[1]["bias_correction"] is True
    with pytest.raises(ValidationError, match="bias_correction: false only works with optimizer: adamax"):
        TrainSettings(bias_correction=False)
    corrected, plain = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    toy_train(corrected, tmp_path / "corrected", optimizer="adamax")
    toy_train(plain, tmp_path / "plain", optimizer="adamax", bias_correction=False)
    assert not same_weights(corrected, plain)


@pytest.mark.parametrize("betas", [[0.9, 1.0], [-0.1, 0.999]])
def test_decay_rates_that_no_optimizer_takes_are_refused_before_a_run(betas: list[float]) -> None:
    with pytest.raises(RecipeError, match=r"^train\.betas"):
        checked(TrainSettings, {"betas": betas}, "train")
