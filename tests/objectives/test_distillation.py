"""Distillation: its formulas against plain PyTorch, and how it composes with the other objectives."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Bernoulli, Categorical, kl_divergence

from tests.tiny import tiny, token_ids
from tests.training.toy import same_weights, toy_data, toy_train
from tombola.errors import TombolaError
from tombola.objectives.building import objective_of
from tombola.objectives.consistency import COPY
from tombola.objectives.cross_entropy import CrossEntropy, CrossEntropyLoss
from tombola.objectives.distillation import (
    ADVERSARIAL,
    LOGITS,
    STATES,
    Distill,
    Distilled,
    HiddenStates,
    WithTeacher,
    divergence,
    mapped_layers,
)
from tombola.objectives.poe import PoE, PoELoss
from tombola.objectives.settings import Adversary


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def batch_of(labels: torch.Tensor | None = None, length: int = 7) -> dict[str, torch.Tensor]:
    ids = token_ids(4, length)
    mask = torch.ones_like(ids)
    mask[0, length - 3 :] = 0
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": labels if labels is not None else torch.tensor([0, 1, 1, 0]),
    }


def test_the_kl_of_classes_is_torchs() -> None:
    teacher, student = random(5, 3), random(5, 3, seed=1)
    labels = torch.tensor([0, 2, 1, 1, 0])
    expected = kl_divergence(Categorical(logits=teacher / 4), Categorical(logits=student / 4)).mean() * 16
    assert torch.allclose(divergence(teacher, student, labels, 4.0), expected, atol=1e-6)
    assert divergence(teacher, teacher, labels, 4.0) == 0


def test_tokens_without_a_label_do_not_count() -> None:
    teacher, student = random(2, 4, 3), random(2, 4, 3, seed=1)
    labels = torch.tensor([[-100, 1, 2, -100], [-100, 0, -100, -100]])
    kept = labels != -100
    expected = kl_divergence(
        Categorical(logits=teacher[kept] / 2), Categorical(logits=student[kept] / 2)
    ).mean()
    assert torch.allclose(divergence(teacher, student, labels, 2.0), 4 * expected, atol=1e-6)


def test_start_and_end_of_an_answer_are_two_items() -> None:
    teacher, student = random(3, 2, 6), random(3, 2, 6, seed=1)
    labels = torch.tensor([[1, 2], [0, 0], [3, 5]])
    parts = [
        kl_divergence(Categorical(logits=teacher[:, side]), Categorical(logits=student[:, side])).mean()
        for side in (0, 1)
    ]
    assert torch.allclose(divergence(teacher, student, labels, 1.0), sum(parts) / 2, atol=1e-6)


def test_several_labels_are_bernoulli_each_and_numbers_are_squared() -> None:
    teacher, student = random(5, 3), random(5, 3, seed=1)
    flags = torch.randint(2, (5, 3)).float()
    expected = kl_divergence(Bernoulli(logits=teacher / 2), Bernoulli(logits=student / 2)).mean() * 4
    assert torch.allclose(divergence(teacher, student, flags, 2.0), expected, atol=1e-6)
    value = divergence(teacher[:, :1], student[:, :1], torch.rand(5), 2.0)
    assert torch.allclose(value, F.mse_loss(student[:, :1], teacher[:, :1]))


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_the_weight_shares_the_loss_between_teacher_and_labels(weight: float) -> None:
    batch = {**batch_of(), LOGITS: random(4, 2)}
    student = random(4, 2, seed=1)
    loss = Distilled(CrossEntropy(), Distill(weight=weight)).of_logits(student, batch)
    taught = divergence(batch[LOGITS], student, batch["labels"], 2.0)
    assert torch.allclose(loss, weight * taught + (1 - weight) * F.cross_entropy(student, batch["labels"]))


def test_a_debiasing_loss_stays_inside() -> None:
    batch = {**batch_of(), LOGITS: random(4, 2), "bias": random(4, 2, seed=2).log_softmax(-1)}
    student = random(4, 2, seed=1)
    loss = objective_of(PoELoss(), distill=Distill(weight=0.5))
    expected = 0.5 * divergence(batch[LOGITS], student, batch["labels"], 2.0)
    expected += 0.5 * PoE().of_logits(student, batch)
    assert torch.allclose(loss.of_logits(student, batch), expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "gpt2"])
def test_the_teacher_sees_the_batch_once_however_many_passes_the_adversary_takes(model_type: str) -> None:
    student, teacher = tiny(model_type, num_labels=2), tiny("bert", num_labels=2, seed=5).train()
    passes: dict[str, list[torch.Tensor]] = {"student": [], "teacher": []}
    for name, model in (("student", student), ("teacher", teacher)):
        model.register_forward_hook(
            lambda module, arguments, options, output, name=name: passes[name].append(options["input_ids"]),
            with_kwargs=True,
        )
    student.config.pad_token_id = 0
    batch = batch_of()
    inner = objective_of(CrossEntropyLoss(), Adversary(steps=3), 1.0, Distill())
    WithTeacher(inner, teacher).step(student, batch, lambda loss: loss.backward())
    assert len(passes["student"]) == 3
    (asked,) = passes["teacher"]
    assert torch.equal(asked, batch["input_ids"])
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert not teacher.training


def test_what_the_teacher_says_is_its_own_plain_output() -> None:
    teacher = tiny("bert", num_labels=2)
    batch = {**batch_of(), "token_type_ids": torch.zeros(4, 7, dtype=torch.long)}
    said = WithTeacher(CrossEntropy(), teacher, layers=(0, 2)).taught(batch)
    with torch.no_grad():
        plain = teacher(batch["input_ids"], batch["attention_mask"], output_hidden_states=True)
    assert torch.equal(said[LOGITS], plain.logits)
    assert torch.equal(said[STATES], torch.stack([plain.hidden_states[0], plain.hidden_states[2]], dim=1))
    other = WithTeacher(CrossEntropy(), tiny("distilbert", num_labels=2))  # reads no token types
    assert other.taught(batch)[LOGITS].shape == (4, 2)


@pytest.mark.parametrize("column", [ADVERSARIAL, COPY])
def test_a_changed_text_is_taught_the_answer_to_its_original(column: str) -> None:
    student, teacher = tiny("bert", num_labels=2), tiny("bert", num_labels=2, seed=5)
    batch = {**batch_of(), column: torch.tensor([0, 1, 0, 0])}
    plain = WithTeacher(CrossEntropy(), teacher, layers=(1, 2)).taught(batch_of())
    taught = WithTeacher(CrossEntropy(), teacher, layers=(1, 2)).taught(batch)
    assert torch.equal(taught[LOGITS], plain[LOGITS][[0, 0, 2, 3]])
    assert not torch.equal(plain[LOGITS][0], plain[LOGITS][1])
    hidden = HiddenStates(CrossEntropy(), weight=3.0, student_layers=(1, 2))
    others = {name: values[[0, 2, 3]] for name, values in plain.items()}
    apart = hidden.loss(student, taught) - CrossEntropy().loss(student, taught)
    assert torch.allclose(
        apart, hidden.loss(student, others) - CrossEntropy().loss(student, others), atol=1e-5
    )


@pytest.mark.parametrize("r_drop", [None, 1.0])
def test_hidden_states_are_compared_on_real_tokens_alone(r_drop: float | None) -> None:
    student, teacher = tiny("bert", num_labels=2), tiny("bert", num_labels=2, seed=5)
    batch = WithTeacher(CrossEntropy(), teacher, layers=(1, 2)).taught(batch_of())
    inner = objective_of(CrossEntropyLoss(), r_drop=r_drop)
    loss = HiddenStates(inner, weight=3.0, student_layers=(1, 2)).loss(student, batch)
    kept = batch["attention_mask"].bool()
    states = student(batch["input_ids"], batch["attention_mask"], output_hidden_states=True).hidden_states
    errors = [
        F.mse_loss(states[1 + layer][row][kept[row]], batch[STATES][row, layer][kept[row]])
        for layer in range(2)
        for row in range(4)
    ]
    expected = inner.loss(student, batch) + 3.0 * sum(errors) / 8
    assert torch.allclose(loss, expected, atol=1e-5)
    assert not student._forward_hooks


def test_layers_are_mapped_by_depth() -> None:
    assert mapped_layers("even", 3, 12) == ((1, 2, 3), (4, 8, 12))
    assert mapped_layers("even", 2, 2) == ((1, 2), (1, 2))
    assert mapped_layers("last", 3, 12) == ((3,), (12,))
    assert mapped_layers((0, 12), 2, 12) == ((1, 2), (0, 12))
    with pytest.raises(TombolaError, match=r"\(0 to 12\) for each of the model's 2 layers; not \[1, 2, 3\]"):
        mapped_layers((1, 2, 3), 2, 12)
    with pytest.raises(TombolaError, match="not \\[1, 13\\]"):
        mapped_layers((1, 13), 2, 12)


def agreement(one: Any, other: Any, data: Any) -> float:
    rows = [torch.tensor([data[i]["input_ids"]]) for i in range(len(data))]
    with torch.no_grad():
        return sum(float(one(row).logits.argmax() == other(row).logits.argmax()) for row in rows) / len(rows)


@pytest.mark.thorough
def test_a_student_learns_from_a_teacher_whatever_the_labels_say(tmp_path: Path) -> None:
    data = toy_data(60)
    teacher = tiny("bert", num_labels=2, seed=3)
    toy_train(teacher, tmp_path / "teacher", data, epochs=8)
    wrong = type(data)(data.inputs, data.offsets, 1 - data.labels)
    student = tiny("bert", num_labels=2)
    before = agreement(student, teacher, data)
    toy_train(
        student,
        tmp_path / "student",
        wrong,
        teacher=teacher,
        distill=Distill(weight=1.0),
        epochs=16,
    )
    after = agreement(student, teacher, data)
    assert after > max(0.9, before)


class Killed(BaseException):
    """Stands for a kill."""


def test_a_resumed_distillation_ends_with_equal_bytes_and_no_projection(tmp_path: Path) -> None:
    teacher = tiny("bert", num_labels=2, seed=3, hidden_size=24, num_hidden_layers=4)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    options: dict[str, Any] = {
        "teacher": teacher,
        "distill": Distill(hidden=1.0, weight=0.5),
        "adversary": Adversary(steps=2),
        "r_drop": 0.5,
    }

    def kill(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == 7:
            raise Killed

    whole, resumed = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    names = set(whole.state_dict())
    log = toy_train(whole, tmp_path / "whole", **options)
    with pytest.raises(Killed):
        toy_train(
            tiny("bert", num_labels=2), tmp_path / "killed", checkpoint_minutes=0, progress=kill, **options
        )
    rest = toy_train(resumed, tmp_path / "killed", **options)
    assert rest.resumed_from == 6
    assert same_weights(whole, resumed)
    assert log.curve == rest.curve
    assert set(whole.state_dict()) == names
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())


def test_without_a_teacher_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="no teacher"):
        toy_train(tiny("bert", num_labels=2), tmp_path, distill=Distill())


def test_a_teacher_without_a_padding_token_reads_batches(tmp_path: Path) -> None:
    teacher = tiny("gpt2", num_labels=2, pad_token_id=None)
    toy_train(tiny("gpt2", num_labels=2), tmp_path, distill=Distill(hidden=0.1), teacher=teacher, epochs=1)
