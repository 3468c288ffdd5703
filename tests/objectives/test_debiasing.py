"""The losses against a known bias, against their definitions and at their extremes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.tiny import tiny, token_ids
from tombola.errors import TombolaError
from tombola.objectives.confidence import Confidence
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.objectives.poe import PoE, PoELoss
from tombola.objectives.reweighting import Reweighting, ReweightingLoss

SURE, NEVER = 0.0, -1e4  # log-probabilities of 1 and of 0
LOSSES = [PoE, Reweighting, Confidence]


def examples(count: int = 6, classes: int = 3) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and a batch with random labels, bias and teacher."""
    generator = torch.Generator().manual_seed(0)
    logits, bias, teacher = torch.randn(3, count, classes, generator=generator)
    labels = torch.randint(classes, (count,), generator=generator)
    batch = {"labels": labels, "bias": bias.log_softmax(-1), "teacher": (2 * teacher).softmax(-1)}
    return logits.requires_grad_(), batch


def right_with(probability: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities of a two-class bias model that gives the right class this probability."""
    both = torch.stack([probability, 1 - probability], dim=1).log().clamp_min(NEVER)
    return torch.where(labels[:, None] == 0, both, both.flip(1))


def test_product_of_experts_is_by_the_book() -> None:
    logits, batch = examples()
    product = logits.softmax(-1) * batch["bias"].exp()
    right = (product / product.sum(-1, keepdim=True))[torch.arange(6), batch["labels"]]
    torch.testing.assert_close(PoE().of_logits(logits, batch), -right.log().mean())


def test_reweighting_is_by_the_book() -> None:
    logits, batch = examples()
    rows = torch.arange(6)
    weights = 1 - batch["bias"].exp()[rows, batch["labels"]]
    losses = -logits.softmax(-1)[rows, batch["labels"]].log()
    expected = (weights * losses).sum() / weights.sum()
    torch.testing.assert_close(Reweighting().of_logits(logits, batch), expected)


def test_confidence_regularisation_is_by_the_book() -> None:
    logits, batch = examples()
    modesty = 1 - batch["bias"].exp()[torch.arange(6), batch["labels"]]
    target = batch["teacher"] ** modesty[:, None]
    target = target / target.sum(-1, keepdim=True)
    expected = -(target * logits.softmax(-1).log()).sum(-1).mean()
    torch.testing.assert_close(Confidence().of_logits(logits, batch), expected)


def test_experts_without_an_opinion_change_nothing() -> None:
    logits, batch = examples()
    uniform = {**batch, "bias": torch.full((6, 3), 1 / 3).log()}
    torch.testing.assert_close(PoE().of_logits(logits, uniform), CrossEntropy().of_logits(logits, batch))


def test_experts_that_are_sure_leave_no_gradient() -> None:
    logits, batch = examples()
    sure = F.one_hot(batch["labels"], 3).float().log().clamp_min(NEVER)
    PoE().of_logits(logits, {**batch, "bias": sure}).backward()
    assert logits.grad is not None
    assert not logits.grad.any()


def test_examples_that_the_bias_explains_do_not_count() -> None:
    logits, batch = examples(classes=2)
    explained = torch.tensor([True, False, True, False, False, True])
    labels = batch["labels"]
    bias = right_with(torch.where(explained, 1.0, 0.3), labels)
    loss = Reweighting().of_logits(logits, {"labels": labels, "bias": bias})
    torch.testing.assert_close(loss, F.cross_entropy(logits[~explained], labels[~explained]))


def test_a_batch_that_the_bias_explains_wholly_is_no_division_by_zero() -> None:
    logits, batch = examples(classes=2)
    bias = right_with(torch.ones(6), batch["labels"])
    loss = Reweighting().of_logits(logits, {**batch, "bias": bias})
    loss.backward()
    assert loss == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_confidence_where_the_bias_is_wrong_is_distillation() -> None:
    logits, batch = examples(classes=2)
    wrong = {**batch, "bias": right_with(torch.zeros(6), batch["labels"])}
    expected = F.cross_entropy(logits, batch["teacher"])
    torch.testing.assert_close(Confidence().of_logits(logits, wrong), expected)


def test_confidence_where_the_bias_is_sure_asks_for_doubt() -> None:
    logits, batch = examples(classes=2)
    sure = {**batch, "bias": right_with(torch.ones(6), batch["labels"])}
    expected = F.cross_entropy(logits, torch.full((6, 2), 0.5))
    torch.testing.assert_close(Confidence().of_logits(logits, sure), expected)


def test_a_teacher_and_a_bias_that_both_exclude_a_class_give_a_number() -> None:
    logits, batch = examples(classes=2)
    bias, teacher = right_with(torch.ones(6), batch["labels"]), F.one_hot(batch["labels"], 2).float()
    loss = Confidence().of_logits(logits, {**batch, "bias": bias, "teacher": teacher})
    torch.testing.assert_close(loss, F.cross_entropy(logits, torch.full((6, 2), 0.5)))


@pytest.mark.parametrize("loss", LOSSES)
def test_annealing_raises_the_bias_to_a_power_and_renormalises(loss: type[PoE]) -> None:
    logits, batch = examples()
    annealed = loss(loss().settings.model_copy(update={"anneal": (1.0, 0.2)}))
    torch.testing.assert_close(annealed.of_logits(logits, batch), loss().of_logits(logits, batch))
    for share, exponent in ((0.0, 1.0), (0.25, 0.8), (1.0, 0.2)):
        annealed.at(share)
        power = batch["bias"].exp() ** exponent
        weaker = {**batch, "bias": (power / power.sum(-1, keepdim=True)).log()}
        torch.testing.assert_close(annealed.of_logits(logits, batch), loss().of_logits(logits, weaker))


def test_a_bias_annealed_away_is_cross_entropy() -> None:
    logits, batch = examples()
    plain = CrossEntropy().of_logits(logits, batch)
    for loss in (PoE(PoELoss(anneal=(1, 0))), Reweighting(ReweightingLoss(anneal=(1, 0)))):
        loss.at(1.0)
        torch.testing.assert_close(loss.of_logits(logits, batch), plain)


@pytest.mark.parametrize("loss", LOSSES)
def test_data_without_a_bias_names_the_field_of_the_recipe(loss: type[PoE]) -> None:
    logits, batch = examples()
    del batch["bias"]
    with pytest.raises(
        TombolaError, match=rf"loss: {loss().settings.kind} needs a bias model's .* `bias` in the recipe"
    ):
        loss().of_logits(logits, batch)


def test_data_without_a_teacher_is_named() -> None:
    logits, batch = examples()
    del batch["teacher"]
    with pytest.raises(TombolaError, match="confidence needs a teacher's probabilities"):
        Confidence().of_logits(logits, batch)


def test_a_bias_for_other_classes_is_named() -> None:
    logits, batch = examples()
    with pytest.raises(TombolaError, match="'bias' has 2 values per example, but the task has 3 classes"):
        PoE().of_logits(logits, {**batch, "bias": batch["bias"][:, :2]})


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("head", "labels"),
    [
        ("sequence-classification", torch.tensor([0.5, 1.0, 2.0])),
        ("question-answering", torch.zeros(3, 2, dtype=torch.int64)),
        ("masked-lm", token_ids()),
    ],
)
def test_tasks_without_classes_are_refused(loss: type[PoE], head: str, labels: Tensor) -> None:
    outputs = {"num_labels": 1} if head == "sequence-classification" else {}
    batch = {"input_ids": token_ids(), "labels": labels}
    with pytest.raises(TombolaError, match=f"{loss().settings.kind} needs a task with one class per example"):
        loss().loss(tiny("bert", head, **outputs), batch)
