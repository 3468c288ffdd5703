"""The plain objective against the models' own losses and against its definition."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.tiny import tiny, token_ids
from tombola.errors import UnknownName
from tombola.objectives import inputs_of
from tombola.objectives.cross_entropy import CrossEntropy, CrossEntropyLoss
from tombola.objectives.settings import losses


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "modernbert", "gpt2"])
@pytest.mark.parametrize(("outputs", "labels"), [(3, [2, 0, 1]), (1, [0.5, -1.25, 3.0])])
def test_the_loss_is_the_models_own(model_type: str, outputs: int, labels: list[float]) -> None:
    model = tiny(model_type, num_labels=outputs)
    batch = {"input_ids": token_ids(), "attention_mask": torch.ones(3, 7), "labels": torch.tensor(labels)}
    loss = CrossEntropy().loss(model, batch)
    torch.testing.assert_close(loss, model(**batch).loss)


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "gpt2"])
def test_label_sets_have_the_models_own_binary_loss(model_type: str) -> None:
    model = tiny(model_type, num_labels=4, problem_type="multi_label_classification")
    labels = torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]])
    batch = {"input_ids": token_ids(), "attention_mask": torch.ones(3, 7), "labels": labels}
    torch.testing.assert_close(CrossEntropy().loss(model, batch), model(**batch).loss)
    smooth = CrossEntropy(CrossEntropyLoss(label_smoothing=0.2)).loss(model, batch)
    targets = torch.where(labels == 1, 0.9, 0.1)
    logits = model(**inputs_of(batch)).logits
    expected = -(targets * F.logsigmoid(logits) + (1 - targets) * F.logsigmoid(-logits)).mean()
    torch.testing.assert_close(smooth, expected)


def test_tags_have_the_models_own_loss_over_labelled_tokens() -> None:
    model = tiny("bert", "token-classification", num_labels=5)
    labels = torch.full((3, 7), -100)
    labels[0, 1], labels[0, 3], labels[2, 2] = 4, 0, 2
    batch = {"input_ids": token_ids(), "attention_mask": torch.ones(3, 7), "labels": labels}
    torch.testing.assert_close(CrossEntropy().loss(model, batch), model(**batch).loss)


def test_masked_tokens_alone_count_in_language_modelling() -> None:
    model = tiny("bert", "masked-lm")
    labels = torch.full((3, 7), -100)
    labels[0, 2], labels[2, 5] = 9, 30
    batch = {"input_ids": token_ids(), "labels": labels}
    logits = model(batch["input_ids"]).logits
    expected = -(logits[0, 2].log_softmax(-1)[9] + logits[2, 5].log_softmax(-1)[30]) / 2
    torch.testing.assert_close(CrossEntropy().loss(model, batch), expected)


def test_label_smoothing_mixes_in_the_uniform_distribution() -> None:
    logits, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 0])
    target = 0.9 * F.one_hot(labels, 4) + 0.1 / 4
    expected = -(target * logits.log_softmax(-1)).sum(-1).mean()
    loss = CrossEntropy(CrossEntropyLoss(label_smoothing=0.1)).of_logits(logits, {"labels": labels})
    torch.testing.assert_close(loss, expected)


def test_label_smoothing_of_an_answer_covers_possible_answers_alone() -> None:
    logits, labels = torch.randn(2, 2, 5), torch.tensor([[2, 3], [0, 0]])
    possible = torch.tensor([[1, 0, 1, 1, 0], [1, 0, 1, 0, 0]])
    uniform = (possible / possible.sum(-1, keepdim=True))[:, None]
    target = 0.9 * F.one_hot(labels, 5) + 0.1 * uniform
    expected = -(target * logits.log_softmax(-1)).sum(-1).mean()
    smooth = CrossEntropy(CrossEntropyLoss(label_smoothing=0.1))
    loss = smooth.of_logits(logits, {"labels": labels, "answerable": possible})
    torch.testing.assert_close(loss, expected)


def test_a_step_is_one_backward_pass() -> None:
    model = tiny("bert", num_labels=2)
    batch = {"input_ids": token_ids(), "labels": torch.tensor([0, 1, 1])}
    given: list[Tensor] = []
    backward: Callable[[Tensor], None] = given.append
    loss = CrossEntropy().step(model, batch, backward)
    assert len(given) == 1
    assert given[0].requires_grad
    assert not loss.requires_grad
    assert loss == given[0]


def test_columns_of_other_objectives_do_not_reach_the_model() -> None:
    batch = {"input_ids": token_ids(), "labels": torch.tensor([0, 1, 1]), "bias": torch.zeros(3, 2)}
    assert set(inputs_of(batch)) == {"input_ids"}


def test_losses_are_found_by_name() -> None:
    assert losses["cross_entropy"].settings is CrossEntropyLoss
    settings = CrossEntropyLoss(label_smoothing=0.2)
    assert losses["cross_entropy"].build(settings) == CrossEntropy(settings)
    with pytest.raises(UnknownName, match="cross_entropy"):
        losses["crossentropy"]


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "modernbert", "gpt2"])
def test_the_loss_of_an_answer_is_the_models_own(model_type: str) -> None:
    model = tiny(model_type, "question-answering")
    labels = torch.tensor([[1, 3], [0, 0], [6, 6]])
    batch = {"input_ids": token_ids(), "attention_mask": torch.ones(3, 7), "labels": labels}
    own = model(**inputs_of(batch), start_positions=labels[:, 0], end_positions=labels[:, 1]).loss
    torch.testing.assert_close(CrossEntropy().loss(model, batch), own)
