"""Clipping against torch's own, and what it leaves alone."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import TrainerCallback

from tests.tiny import tiny
from tests.training.toy import toy_train
from tombola.training.clipping import clip, clip_each


def two_alike() -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(shape, generator=generator) for shape in ((7, 5), (11,), (3, 3))]
    both = []
    for _ in range(2):
        parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        both.append([*parameters, nn.Parameter(torch.zeros(2))])
    return both[0], both[1]


@pytest.mark.parametrize("longest", [0.01, 1.0, 7.0, 1e3])
def test_clips_as_torch_does_to_the_bit(longest: float) -> None:
    ours, theirs = two_alike()
    norm = clip(ours, longest)
    assert torch.equal(norm, nn.utils.clip_grad_norm_(theirs, longest))
    for one, other in zip(ours[:-1], theirs[:-1], strict=True):
        assert torch.equal(one.grad, other.grad)
    assert ours[-1].grad is None


def test_short_gradients_are_not_touched_and_long_ones_are() -> None:
    parameters, _ = two_alike()
    before = [parameter.grad._version for parameter in parameters[:-1]]
    clip(parameters, 1e3)
    assert [parameter.grad._version for parameter in parameters[:-1]] == before
    clip(parameters, 1.0)
    assert [parameter.grad._version for parameter in parameters[:-1]] > before


def test_the_norm_of_a_diverged_step_comes_back_as_it_is() -> None:
    parameters, _ = two_alike()
    parameters[0].grad[0, 0] = float("nan")
    assert clip(parameters, 1.0).isnan()


@pytest.mark.parametrize("longest", [0.01, 1.0, 7.0, 1e3])
def test_clipping_each_tensor_is_torchs_clipping_of_one_tensor(longest: float) -> None:
    ours, theirs = two_alike()
    norm = clip_each(ours, longest)
    before = nn.utils.get_total_norm([parameter.grad for parameter in theirs[:-1]])
    torch.testing.assert_close(norm, before)
    for parameter in theirs[:-1]:
        nn.utils.clip_grad_norm_([parameter], longest)
    for one, other in zip(ours[:-1], theirs[:-1], strict=True):
        assert torch.equal(one.grad, other.grad)
    assert ours[-1].grad is None
    assert clip_each([ours[-1]], longest) == 0


def test_a_run_can_clip_each_tensor_by_itself(tmp_path: Path) -> None:
    class Norms(TrainerCallback):
        found: list[float] = []

        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            gradients = [p.grad for p in kwargs["model"].parameters() if p.grad is not None]
            self.found.append(max(float(gradient.norm()) for gradient in gradients))
            self.whole = float(nn.utils.get_total_norm(gradients))

    for per in ("all", "tensor"):
        norms = Norms()
        Norms.found = []
        options = {"clip": 0.01, "clip_per": per, "callbacks": [norms], "steps": 2}
        toy_train(tiny("bert", num_labels=2), tmp_path / per, **options)
        assert max(norms.found) <= 0.01 * (1 + 1e-5)
        assert (norms.whole > 0.02) is (per == "tensor")
