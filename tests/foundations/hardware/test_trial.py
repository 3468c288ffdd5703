"""The trial computes what plain PyTorch computes, and keeps to its budget."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from tombola.foundations.hardware import trial
from tombola.foundations.hardware.trial import BUDGET, MAX_ROUNDS, MIN_ROUNDS, Trial, glance


def test_a_step_is_a_whole_forward_and_backward_pass() -> None:
    tried = Trial(torch.device("cpu"))
    tried.use(texts=3)
    assert tried.inputs.shape == (3, 32, 384)
    loss, gradient = tried.step(bf16=False), tried.gradient()
    again, same = tried.step(bf16=False), tried.gradient()  # gradients do not add up from step to step
    assert torch.equal(loss, again)
    assert torch.equal(gradient, same)
    parameters = [*tried.encoder.parameters(), *tried.classifier.parameters()]
    expected = nn.functional.cross_entropy(
        tried.classifier(tried.encoder(tried.inputs)[:, 0]), torch.tensor([0, 1, 0])
    )
    gradients = torch.autograd.grad(expected, parameters)
    assert torch.equal(loss, expected.detach())
    assert torch.equal(gradient, torch.cat([part.flatten() for part in gradients]))
    assert gradient.count_nonzero() > 0.99 * gradient.numel()


class Clock:
    """Stands for a trial whose steps take a known time, and a known time per text besides."""

    batch = 32

    def __init__(self, fp32: float, bf16: float, constant: float) -> None:
        self.each, self.constant = {False: fp32, True: bf16}, constant
        self.texts, self.spent = 1, 0.0

    def use(self, texts: int) -> None:
        self.texts = texts

    def step(self, bf16: bool) -> None:
        self.spent += self.constant + self.texts * self.each[bf16]

    def seconds(self, bf16: bool) -> float:
        before = self.spent
        self.step(bf16)
        return self.spent - before


@pytest.mark.parametrize(
    ("fp32", "bf16", "constant", "texts", "rounds"),
    [
        (0.001, 0.001, 0.0, 32, MAX_ROUNDS),
        (0.003, 0.003, 0.02, 32, MAX_ROUNDS),  # one text alone takes 23 ms, in a batch 4
        (0.014, 0.014, 0.0, 32, 2),
        (0.03, 0.03, 0.0, 6, MAX_ROUNDS),
        (0.02, 0.3, 0.0, 1, MAX_ROUNDS),
        (1.0, 3.0, 0.0, 1, MIN_ROUNDS),
    ],
)
def test_slow_hardware_gets_fewer_texts_and_rounds(
    fp32: float, bf16: float, constant: float, texts: int, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(fp32, bf16, constant)
    assert glance(clock) == rounds  # type: ignore[arg-type]
    assert clock.texts == texts
    assert json.loads(capsys.readouterr().out) == {"fp32_seconds": [pytest.approx(fp32 + constant)]}
    each = 2 * constant + texts * (fp32 + bf16)
    if fp32 < 1:
        assert clock.spent + each * (1 + rounds) <= BUDGET * (1 + 1e-9)


def test_a_device_that_torch_lacks_is_an_error_in_json() -> None:
    command = [sys.executable, "-P", trial.__file__, "--threads", "1", "--device", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nowhere" in json.loads(done.stdout)["error"]
