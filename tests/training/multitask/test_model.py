"""One encoder, many heads: in memory, on disk, and one task taken out again."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from tests.tiny import token_ids
from tests.training.multitask.toy import shared, toy_masks
from tests.training.toy import TOKENIZER
from tombola.errors import UnknownName
from tombola.training.multitask.masking import TaskMasks
from tombola.training.multitask.model import open_task, save_shared

NAMES = ["two", "three", "number"]
FAMILIES = ["bert", "roberta", "distilbert", "deberta-v2", "modernbert", "gpt2", "llama"]


def test_the_encoder_is_one_and_the_heads_are_many() -> None:
    model = shared()
    assert len({id(one.base_model) for one in model.models}) == 1
    assert [model.models[task].classifier.out_features for task in range(3)] == [2, 3, 1]
    names = [name for name, _ in model.named_parameters()]
    assert sum("query.weight" in name for name in names) == 2  # once for each layer
    assert sum("classifier.weight" in name for name in names) == 3


@pytest.mark.parametrize("granularity", ["weight", "head"])
@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_task_taken_from_disk_is_the_shared_model_under_its_mask(
    tmp_path: Path, model_type: str, granularity: str
) -> None:
    model = shared(model_type)
    masks = toy_masks(model, granularity)
    save_shared(model, NAMES, TOKENIZER, tmp_path, masks)
    task_masks = TaskMasks(model, masks)
    task_masks.on_train_begin(None, None, None)
    tokens = token_ids()
    for task, name in enumerate(NAMES):
        model.task = task
        whole = model(input_ids=tokens).logits
        task_masks.apply(task)
        masked = model(input_ids=tokens).logits
        task_masks.restore()
        taken = open_task(tmp_path, name).eval()
        assert torch.equal(taken(input_ids=tokens).logits, masked)
        assert not torch.equal(masked, whole)
        assert torch.equal(model(input_ids=tokens).logits, whole)
        assert taken.config.num_labels == (2, 3, 1)[task]
    encoder = AutoModel.from_pretrained(tmp_path).eval()
    for name, weight in model.base_model.state_dict().items():
        assert torch.equal(encoder.state_dict()[name], weight), "the folder holds the whole encoder"


def test_opening_draws_no_random_numbers(tmp_path: Path) -> None:
    save_shared(shared(), NAMES, TOKENIZER, tmp_path)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    open_task(tmp_path, "two")
    assert torch.equal(torch.rand(1), expected)


def test_a_task_that_is_not_there_gets_the_nearest_name(tmp_path: Path) -> None:
    save_shared(shared(), NAMES, TOKENIZER, tmp_path)
    with pytest.raises(UnknownName, match="Did you mean 'three'"):
        open_task(tmp_path, "thre")
