"""Batches to time models on: texts of a task at their own lengths, or random tokens of one length."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from tests.evaluation.test_label_sets import TASK as FEELINGS
from tests.tiny import tiny
from tests.words import word_tokenizer
from tests.world import World
from tombola.evaluation.evaluate import evaluate_split
from tombola.models.loading import load_tokenizer
from tombola.shrink import RandomTokens, TaskTexts, agreement
from tombola.shrink.agreement import compare_int8, decisions
from tombola.tasks import Split, Task


@pytest.fixture
def split(world: World) -> Split:
    return Task.named(str(world.task)).load("validation")


def texts_of(world: World, split: Split, max_length: int = 16) -> TaskTexts:
    tokenizer = load_tokenizer(world.model)
    return TaskTexts.of(split, tokenizer, max_length, tiny("bert", vocab_size=len(tokenizer)).config)


def test_batches_have_the_lengths_of_the_data(world: World, split: Split) -> None:
    texts, tokenizer = texts_of(world, split), load_tokenizer(world.model)
    lengths = [len(tokenizer(text).input_ids) for (text,) in split.texts]
    assert len(set(lengths)) > 1
    batches = texts.batches(tiny("bert"), 1, len(split))
    assert Counter(batch["input_ids"].shape[1] for batch in batches) == Counter(lengths)
    assert texts.length == round(sum(lengths) / len(lengths))
    assert texts.about == f"48 texts of tiny/validation, {texts.length} tokens on average"


def test_batches_are_padded_to_their_own_longest_and_come_again_the_same(world: World, split: Split) -> None:
    texts, model = texts_of(world, split), tiny("bert")
    batches = texts.batches(model, 5, 4)
    assert all(set(batch) == {"input_ids", "token_type_ids", "attention_mask"} for batch in batches)
    for batch in batches:
        assert batch["attention_mask"].sum(dim=1).max() == batch["input_ids"].shape[1]
    again = texts.batches(model, 5, 4)
    assert all(
        torch.equal(one["input_ids"], two["input_ids"]) for one, two in zip(batches, again, strict=True)
    )
    assert len({tuple(row) for batch in batches for row in batch["input_ids"].tolist()}) > 15


def test_every_text_is_used_before_one_comes_back(world: World, split: Split) -> None:
    texts = texts_of(world, split)
    seen = [tuple(b["input_ids"][0].tolist()) for b in texts.batches(tiny("bert"), 1, 2 * len(split))]
    assert Counter(seen[: len(split)]) == Counter(seen[len(split) :])
    assert seen[: len(split)] != seen[len(split) :]


def test_few_texts_fill_a_large_batch(world: World, split: Split) -> None:
    (batch,) = texts_of(world, split.select([0, 1, 2])).batches(tiny("bert"), 7, 1)
    assert len(batch["input_ids"]) == 7


def test_texts_are_cut_where_the_model_reads_them(world: World, split: Split) -> None:
    texts = texts_of(world, split, max_length=5)
    assert max(batch["input_ids"].shape[1] for batch in texts.in_order(tiny("bert"), 4)) == 5


def test_all_texts_in_the_order_of_the_data(world: World, split: Split) -> None:
    texts = texts_of(world, split)
    rows = [row for batch in texts.in_order(tiny("bert"), 10) for row in batch["input_ids"].tolist()]
    tokenizer = load_tokenizer(world.model)
    assert tokenizer.batch_decode(rows, skip_special_tokens=True) == [text for (text,) in split.texts]


def test_random_tokens_are_as_long_as_the_model_allows() -> None:
    model = tiny("bert")
    assert RandomTokens.fitting(model.config).length == 64
    assert RandomTokens.fitting(AutoConfig.for_model("bloom")).length == 128
    texts = RandomTokens.fitting(model.config, 8, reason="no task")
    assert texts.about == "random tokens, 8 per text (no task)"
    (batch,) = texts.batches(model, 3, 15)
    assert batch["input_ids"].shape == (3, 8)


def test_what_counts_as_a_decision() -> None:
    attended = torch.tensor([[1, 1, 0], [1, 1, 1]]).bool()
    logits = torch.tensor([[[0.0, 1], [1, 0], [0, 1]], [[1, 0], [0, 1], [0, 1]]])
    assert decisions({"logits": logits[:, 0]}, attended).tolist() == [1, 0]
    assert decisions({"logits": logits}, attended).tolist() == [1, 0, 0, 1, 1]
    ends = {"start_logits": logits[..., 0], "end_logits": torch.tensor([[0.0, 1, 5], [0, 1, 5]])}
    assert decisions(ends, attended).tolist() == [1, 0, 1, 2]  # the padding's 5 is no answer
    assert decisions({"logits": torch.zeros(2, 1)}, attended) is None
    assert decisions({"last_hidden_state": logits}, attended) is None


def test_label_sets_are_compared_above_the_threshold_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    names = dict(enumerate(FEELINGS.labels or ()))
    model = tiny(
        "bert", id2label=names, label2id={name: number for number, name in names.items()},
        problem_type="multi_label_classification",
    )  # fmt: skip
    rows = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
    split = Split(FEELINGS, "train", [("a b",), ("c",), ("d a",), ("b",)], rows, list("wxyz"), "")
    monkeypatch.setattr(agreement, "open_session", lambda path: None)
    monkeypatch.setattr(
        agreement,
        "run_session",
        lambda session, batch: {"logits": agreement.outputs_of(model, batch)["logits"] - 9},
    )
    tokenizer = word_tokenizer(["a b c d"])
    for threshold in (0.5, 1e-9):
        own = replace(split, task=FEELINGS.with_settings({"threshold": threshold}))
        found = compare_int8(model, Path(), TaskTexts.of(own, tokenizer, 16, model.config))
        assert found.original_score == evaluate_split(model, tokenizer, own).scores["micro_f1"].value
        assert (found.agreement == 1) == (threshold == 1e-9)
