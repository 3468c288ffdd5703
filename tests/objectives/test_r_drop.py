"""Two dropout passes in one, how far they are apart, and R-Drop on top."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.tiny import tiny, token_ids
from tombola.objectives import LogitLoss, inputs_of
from tombola.objectives.cross_entropy import CrossEntropy, CrossEntropyLoss
from tombola.objectives.passes import disagreement, symmetric_kl, two_passes
from tombola.objectives.poe import PoE
from tombola.objectives.r_drop import RDrop
from tombola.objectives.reweighting import Reweighting


class Says(nn.Module):
    """A model whose doubled batch gets these logits."""

    def __init__(self, *halves: Tensor) -> None:
        super().__init__()
        self.logits = torch.cat(halves)

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        """The logits, if every example is there twice."""
        first, second = input_ids.chunk(2)
        assert torch.equal(first, second)
        return {"logits": self.logits}


def kl(p: Tensor, q: Tensor) -> Tensor:
    """KL(p‖q) as torch has it, as a mean over the examples."""
    return F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="batchmean", log_target=True)


def test_two_passes_differ_in_dropout_alone() -> None:
    model = tiny("bert", num_labels=3)
    batch = {
        "input_ids": token_ids(),
        "attention_mask": torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [1] * 7]),
        "token_type_ids": torch.tensor([[0] * 3 + [1] * 4] * 3),
        "labels": torch.tensor([0, 1, 2]),
        "bias": torch.zeros(3, 3),
    }
    plain = model(**inputs_of(batch)).logits
    for half in two_passes(model, batch):
        torch.testing.assert_close(half, plain)
    model.train()
    first, second = two_passes(model, batch)
    assert (first != second).any(dim=1).all()


def test_symmetric_kl_is_the_mean_of_both_directions() -> None:
    first, second = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    expected = 0.5 * (kl(first, second) + kl(second, first))
    torch.testing.assert_close(symmetric_kl(first, second), expected)
    torch.testing.assert_close(symmetric_kl(second, first), expected)
    assert symmetric_kl(first, first) == 0


def test_disagreement_is_over_items_and_squared_for_regression() -> None:
    first, second = torch.randn(2, 3, 7, 10, generator=torch.Generator().manual_seed(0))
    labels = torch.full((3, 7), -100)
    labels[0, 2] = labels[2, 5] = 4
    pairs = [(first[0, 2], second[0, 2]), (first[2, 5], second[2, 5])]
    expected = sum(symmetric_kl(a[None], b[None]) for a, b in pairs) / 2
    torch.testing.assert_close(disagreement(first, second, labels), expected)
    scores = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.5], [4.0]])
    assert disagreement(*scores, torch.tensor([0.0, 0.0])) == pytest.approx((0.25 + 4) / 2)


SMOOTHED = CrossEntropy(CrossEntropyLoss(label_smoothing=0.1))


@pytest.mark.parametrize("inner", [CrossEntropy(), SMOOTHED, PoE(), Reweighting()])
def test_r_drop_is_by_the_book(inner: LogitLoss) -> None:
    generator = torch.Generator().manual_seed(1)
    first, second, bias = torch.randn(3, 4, 3, generator=generator)
    batch = {"input_ids": token_ids(4), "labels": torch.tensor([0, 1, 2, 0]), "bias": bias}
    losses = [inner.of_logits(logits, batch) for logits in (first, second)]
    expected = sum(losses) / 2 + 0.7 * (kl(first, second) + kl(second, first)) / 2
    torch.testing.assert_close(RDrop(inner, 0.7).loss(Says(first, second), batch), expected)


def test_r_drop_for_regression_is_squared_throughout() -> None:
    first, second = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [2.0]])
    batch = {"input_ids": token_ids(2), "labels": torch.tensor([1.0, 1.0])}
    expected = (0 + 1 + 4 + 1) / 4 + 0.5 * (4 + 0) / 2
    assert RDrop(CrossEntropy(), 0.5).loss(Says(first, second), batch) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("head", "labels"),
    [("question-answering", torch.tensor([[1, 3], [0, 0], [6, 6]])), ("masked-lm", token_ids(seed=1))],
)
def test_without_dropout_r_drop_is_the_plain_loss(head: str, labels: Tensor) -> None:
    model = tiny("bert", head)
    batch = {"input_ids": token_ids(), "labels": labels}
    torch.testing.assert_close(
        RDrop(CrossEntropy(), 5.0).loss(model, batch), CrossEntropy().loss(model, batch)
    )


def test_both_sides_of_the_disagreement_have_a_gradient() -> None:
    model = tiny("bert", num_labels=3).train()
    batch = {"input_ids": token_ids(), "labels": torch.tensor([0, 1, 2])}
    first, second = two_passes(model, batch)
    gradients = torch.autograd.grad(disagreement(first, second, batch["labels"]), [first, second])
    assert all(gradient.any() for gradient in gradients)
