"""One backward pass for two functions of the logits. (ROSE, §3.1)"""

from collections.abc import Callable, Sequence

import pytest
import torch
from accelerate.utils import convert_outputs_to_fp32
from torch import Tensor
from transformers import PreTrainedModel

from tests.tiny import MODEL_TYPES, tiny, token_ids
from tombola.objectives import items_of
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.objectives.passes import disagreement
from tombola.training.selective import Candidates, DropoutRisk, Selection, TwoDraws
from tombola.training.selective.shared_backward import FLOOR, SharedBackward

SIZE = 6
FIRST = Selection(kind="first", upper=60)
ROUNDING = 1e-3
"""In single precision, where gradients reach hundreds."""


def gradients_of(model: PreTrainedModel) -> dict[str, Tensor]:
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def expected(
    model: PreTrainedModel, ids: Tensor, labels: Tensor, bf16: bool = False
) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """The gradients of the divergence and of the loss, from a backward pass each."""
    torch.manual_seed(3)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        logits = model(input_ids=torch.cat([ids, ids])).logits
        divergence = items_of(labels) * disagreement(*logits.chunk(2), labels)
        loss = CrossEntropy().of_logits(logits, {"labels": torch.cat([labels, labels])})
    wanted = torch.autograd.grad(
        divergence, Candidates(model).weights, retain_graph=True, materialize_grads=True
    )
    loss.backward()
    found = gradients_of(model)
    model.zero_grad()
    return wanted, found


def measured(
    model: PreTrainedModel, ids: Tensor, labels: Tensor, bf16: bool = False
) -> tuple[list[Tensor] | None, dict[str, Tensor]]:
    """The same from a step; the first is None unless one pass gave both."""
    torch.manual_seed(3)
    risk = DropoutRisk(Candidates(model), FIRST, summed=True)
    plainly = []
    risk.measure = lambda *_: plainly.append(True)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        TwoDraws(CrossEntropy(), risk).step(
            model, {"input_ids": ids, "labels": labels}, lambda loss: loss.backward()
        )
    return None if plainly else risk._gradients, gradients_of(model)


def agree(
    model: PreTrainedModel,
    labels: Tensor,
    close: Callable[[Tensor, Tensor], None] = torch.testing.assert_close,
) -> None:
    ids = token_ids(SIZE, 7, 0)
    divergence, loss = expected(model, ids, labels)
    ours, gradients = measured(model, ids, labels)
    assert ours is not None
    assert any(gradient.abs().max() > 0 for gradient in ours)
    for one, other in zip(ours, divergence, strict=True):
        close(one, other)
    assert gradients.keys() == loss.keys()
    for name, gradient in gradients.items():
        close(gradient, loss[name])


def dropping(model_type: str, num_labels: int = 2) -> PreTrainedModel:
    model = tiny(model_type, num_labels=num_labels).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3
    return model


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert", "electra", "mpnet"])
@pytest.mark.parametrize("num_labels", [1, 2])
def test_one_pass_gives_the_gradients_of_both(model_type: str, num_labels: int) -> None:
    labels = torch.randn(SIZE) if num_labels == 1 else torch.arange(SIZE) % 2
    agree(dropping(model_type, num_labels), labels)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_gets_the_same_gradients_one_way_or_the_other(model_type: str) -> None:
    model, ids, labels = dropping(model_type), token_ids(SIZE, 7, 0), torch.arange(SIZE) % 2
    divergence, loss = expected(model, ids, labels)
    ours, gradients = measured(model, ids, labels)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, loss[name])
    if ours is not None:
        for one, other in zip(ours, divergence, strict=True):
            torch.testing.assert_close(one, other)


def test_an_ignored_label_counts_in_neither() -> None:
    agree(dropping("bert"), torch.tensor([0, 1, -100, 1, 0, -100]))


def test_rows_whose_loss_has_no_gradient_left_still_diverge() -> None:
    """Where the loss underflows in one dropout pass, but not in the other, the divergence does not."""
    model, ids = dropping("bert"), token_ids(SIZE, 7, 0)
    with torch.no_grad():
        model.classifier.weight.mul_(300)
    torch.manual_seed(3)
    with torch.no_grad():
        logits = model(input_ids=torch.cat([ids, ids])).logits
    labels = logits[:SIZE].argmax(-1)
    assert (logits.softmax(-1).gather(1, torch.cat([labels, labels])[:, None]) == 1).any()
    agree(model, labels, lambda one, other: torch.testing.assert_close(one, other, rtol=1e-3, atol=ROUNDING))


def test_a_gradient_of_nothing_is_raised_to_the_floor() -> None:
    shared = SharedBackward(torch.nn.Linear(1, 1), [], lambda _, gradient: gradient)
    raised = shared._scale(torch.tensor([2.0, 0.0, 1.0]), torch.tensor([[0.0, 0.0], [0.0, 0.0], [-0.5, 0.5]]))
    torch.testing.assert_close(
        raised, torch.tensor([[FLOOR, -FLOOR], [0.0, 0.0], [-0.5, 0.5]]), atol=0, rtol=0
    )
    torch.testing.assert_close(shared._factors, torch.tensor([2.0 / FLOOR, 0.0, -2.0]))


def test_bf16_is_as_close_to_fp32_as_two_passes_are() -> None:
    model, ids, labels = dropping("bert"), token_ids(SIZE, 7, 0), torch.arange(SIZE) % 2
    exact, _ = expected(model, ids, labels)
    plain, _ = expected(model, ids, labels, bf16=True)
    ours, _ = measured(model, ids, labels, bf16=True)
    assert ours is not None

    def error(found: Sequence[Tensor]) -> Tensor:
        return torch.cat([(one - other).flatten() for one, other in zip(found, exact, strict=True)]).norm()

    assert error(ours) <= 1.5 * error(plain)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_layers_in_fp16_have_a_pass_of_their_own_although_accelerate_makes_the_logits_32_bits(
    dtype: torch.dtype,
) -> None:
    model = dropping("bert")
    with_autocast = torch.autocast("cpu", dtype)(model.forward)
    model.forward = convert_outputs_to_fp32(with_autocast)
    shared = measured(model, token_ids(SIZE, 7, 0), torch.arange(SIZE) % 2)[0] is not None
    assert shared == (dtype == torch.bfloat16)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (dropping("bert", 3), torch.arange(SIZE) % 3),
        (dropping("albert"), torch.arange(SIZE) % 2),
    ],
    ids=["three classes", "shared layers"],
)
def test_otherwise_each_has_a_pass_of_its_own(model: PreTrainedModel, labels: Tensor) -> None:
    assert measured(model, token_ids(SIZE, 7, 0), labels)[0] is None


class Penalised(CrossEntropy):
    """A loss that depends on more than the difference of the logits."""

    def of_logits(self, logits: Tensor, batch: dict[str, Tensor]) -> Tensor:
        return super().of_logits(logits, batch) + logits.square().mean()


def test_a_loss_of_both_logits_has_a_pass_of_its_own() -> None:
    model = dropping("bert")
    risk = DropoutRisk(Candidates(model), FIRST, summed=False)
    batch = {"input_ids": token_ids(SIZE, 7, 0), "labels": torch.arange(SIZE) % 2}
    calls, measure = [], risk.measure
    risk.measure = lambda *arguments: calls.append(measure(*arguments))
    TwoDraws(Penalised(), risk).step(model, batch, lambda loss: loss.backward())
    assert len(calls) == 1
    assert any(risk.take())
