"""Dropout for the length of a run: everywhere, and in the head alone."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from tests.tiny import MODEL_TYPES, tiny
from tests.training.multitask.toy import shared
from tests.training.test_run import FAMILIES, Watch
from tests.training.toy import toy_train
from tombola.errors import TombolaError
from tombola.training import TrainSettings
from tombola.training.dropout import dropout_of, has_dropout


@pytest.mark.parametrize("model_type", [*FAMILIES, "llama"])
def test_dropout_reaches_every_layer_for_the_length_of_the_run(tmp_path: Path, model_type: str) -> None:
    model = tiny(model_type, num_labels=2)
    modules = list(model.modules())
    attention = {
        m.attention_dropout for m in modules if isinstance(getattr(m, "attention_dropout", None), float)
    }
    watch = Watch()
    toy_train(model, tmp_path, steps=1, dropout=0.25, callbacks=[watch])
    assert watch.dropouts <= {0.25}
    assert watch.dropouts or attention
    assert list(model.modules()) == modules
    again = {m.attention_dropout for m in modules if isinstance(getattr(m, "attention_dropout", None), float)}
    assert again == attention
    losses = []
    for dropout, folder in ((0.0, "none"), (0.5, "much")):
        fresh = tiny(model_type, num_labels=2)
        losses.append(toy_train(fresh, tmp_path / folder, steps=1, dropout=dropout).curve[0].loss)
    assert losses[0] != losses[1]


def test_dropout_reaches_attention_whose_config_has_an_integer() -> None:
    model = tiny("llama", num_labels=2, attention_dropout=0)
    attention = [module for module in model.modules() if hasattr(module, "attention_dropout")]
    with dropout_of(model, 0.25):
        assert {module.attention_dropout for module in attention} == {0.25}
    assert {module.attention_dropout for module in attention} == {0}


def probabilities(model: nn.Module, encoder: PreTrainedModel) -> tuple[set[float], set[float]]:
    """Those of dropouts in the encoder, and of those in the head."""
    inside = set(encoder.modules())
    found = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    return {module.p for module in found if module in inside}, {m.p for m in found if m not in inside}


@pytest.mark.parametrize(
    "model_type", ["bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"]
)
def test_the_head_alone_has_a_dropout_of_its_own(model_type: str) -> None:
    model = tiny(model_type, num_labels=2)
    before = probabilities(model, model.base_model)
    with dropout_of(model, None, head=0.35):
        encoder, head = probabilities(model, model.base_model)
        assert head == {0.35}
        assert encoder == before[0]
    with dropout_of(model, 0.2, head=0.35):
        encoder, head = probabilities(model, model.base_model)
        assert head == {0.35}
        assert encoder <= {0.2}
    assert probabilities(model, model.base_model) == before


def test_every_head_over_a_shared_encoder_is_reached() -> None:
    model = shared()
    with dropout_of(model, None, head=0.35):  # type: ignore[arg-type]
        assert probabilities(model, model.base_model) == ({0.1}, {0.35})


def test_dropout_of_the_head_changes_a_run(tmp_path: Path) -> None:
    losses = []
    for head in (0.0, 0.5):
        model = tiny("bert", num_labels=2)
        log = toy_train(model, tmp_path / str(head), steps=1, dropout=0.0, head_dropout=head)
        losses.append(log.curve[0].loss)
    torch.manual_seed(0)
    without = toy_train(tiny("bert", num_labels=2), tmp_path / "none", steps=1, dropout=0.0).curve[0].loss
    assert losses[0] == without != losses[1]


@pytest.mark.parametrize(
    ("model_type", "head"), [("gpt2", "sequence-classification"), ("bert", "question-answering")]
)
def test_a_head_without_dropout_is_named(tmp_path: Path, model_type: str, head: str) -> None:
    model = tiny(model_type, head, num_labels=2)
    with pytest.raises(
        TombolaError, match=rf"head_dropout: the head of {type(model).__name__} has no dropout"
    ):
        toy_train(model, tmp_path, head_dropout=0.1)
    modules = {module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    assert modules == {0.1}


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_dropout_is_seen_in_every_family(model_type: str) -> None:
    model = tiny(model_type, num_labels=2)
    with dropout_of(model, 0.0):
        assert not has_dropout(model)
    with dropout_of(model, 0.2):
        assert has_dropout(model)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"r_drop": 1.0}, "r_drop"),
        ({"select": {"kind": "first", "upper": 60}}, "select"),
        ({"select": {"kind": "ensemble", "upper": 60}}, "select"),
    ],
)
def test_equal_passes_are_not_compared(tmp_path: Path, settings: dict[str, object], key: str) -> None:
    """Many recent models have no dropout: R-Drop would add nothing, and First would freeze nothing."""
    checked = TrainSettings.model_validate(settings)
    options = {name: getattr(checked, name) for name in settings}
    with pytest.raises(
        TombolaError, match=rf"^{key}: compares two dropout passes, but the model has no dropout"
    ):
        toy_train(tiny("modernbert", num_labels=2), tmp_path, **options)
    assert toy_train(tiny("modernbert", num_labels=2), tmp_path, steps=1, dropout=0.1, **options).steps == 1
