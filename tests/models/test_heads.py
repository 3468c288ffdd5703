"""A head of its own: what is drawn anew, and what stays."""

import pytest
import torch

from tests.tiny import MODEL_TYPES, tiny
from tombola.models.heads import renew_head


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_renewed_head_depends_on_the_seed_and_leaves_the_base(model_type: str) -> None:
    one, two = tiny(model_type, num_labels=3, seed=0), tiny(model_type, num_labels=3, seed=1)
    before = {name: value.clone() for name, value in one.state_dict().items()}
    base = {id(parameter) for parameter in one.base_model.parameters()}
    head = [name for name, parameter in one.named_parameters() if id(parameter) not in base]
    renew_head(one, seed=5)
    torch.rand(7)
    renew_head(two, seed=5)
    after, other = one.state_dict(), two.state_dict()
    assert head
    assert all(torch.equal(after[name], other[name]) for name in head)
    assert all(not torch.equal(after[name], before[name]) for name in head)
    assert all(torch.equal(after[name], before[name]) for name in after if name not in head)
    renew_head(two, seed=6)
    matrices = [name for name in head if after[name].dim() == 2]
    assert all(not torch.equal(after[name], two.state_dict()[name]) for name in matrices)


def test_a_renewed_head_keeps_what_is_tied_to_the_base() -> None:
    model = tiny("bert", "masked-lm")
    embeddings = model.bert.embeddings.word_embeddings.weight.clone()
    renew_head(model, seed=0)
    assert torch.equal(model.cls.predictions.decoder.weight, embeddings)
