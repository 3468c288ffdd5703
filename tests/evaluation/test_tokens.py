"""Accuracy over masked tokens, against a plain loop, and not as the released code averages it."""

import numpy as np
import pytest
import torch

from tests.tiny import VOCABULARY, tiny
from tests.words import word_tokenizer
from tombola.errors import ModelError
from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.metrics import metrics
from tombola.evaluation.scores import Score
from tombola.evaluation.tokens import predict_tokens
from tombola.tasks import Blocks, MaskTokens, Split, Task, collate_of, encode

WORDS = [f"w{i}" for i in range(VOCABULARY - 5)]
TOKENIZER = word_tokenizer([" ".join(WORDS)])


def passages(count: int = 40, words: int = 9) -> Split:
    rng = np.random.default_rng(0)
    texts = [(" ".join(rng.choice(WORDS, size=words)),) for _ in range(count)]
    ids = [str(i) for i in range(count)]
    return Split(Task.named("wikitext"), "validation", texts, [None] * count, ids, "")


def blocks_of(split: Split, length: int) -> Blocks:
    blocks = encode(split, TOKENIZER, length)
    assert isinstance(blocks, Blocks)
    return blocks


def test_only_masked_tokens_count_each_once() -> None:
    predicted = np.array([[7, 8, 9, 7], [7, 7, 7, 7]])
    labels = np.array([[7, 8, 9, 9], [-100, -100, -100, 8]])
    found = metrics["masked_accuracy"](predicted, labels)
    assert found == Score(3 / 5, np.sqrt(0.6 * 0.4 / 5), 5, "binomial")
    by_block_weighted_by_all_tokens = (4 * 3 / 4 + 4 * 0 / 1) / 8
    assert found.value != by_block_weighted_by_all_tokens


def test_evaluation_equals_a_plain_loop_over_blocks() -> None:
    model, split = tiny("bert", "masked-lm"), passages()
    # A head that prefers to repeat what it reads finds the tokens that were left and misses the others.
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(8)
    result = evaluate_split(model, TOKENIZER, split, 32)
    collate = MaskTokens(TOKENIZER)
    blocks, hits, masked, shares, lengths = blocks_of(split, 32), 0, 0, [], []
    for i in range(len(blocks)):
        batch = collate([blocks[i]])
        labels = batch.pop("labels")[0]
        with torch.no_grad():
            guesses = model(**batch).logits[0].argmax(-1)
        asked = labels != -100
        hits += int((guesses == labels)[asked].sum())
        masked += int(asked.sum())
        shares.append((guesses == labels)[asked].double().mean().item())
        lengths.append(len(labels))
    found = result.scores["masked_accuracy"]
    assert (found.value, found.n) == (pytest.approx(hits / masked), masked)
    assert 0 < hits < masked
    assert found.value != pytest.approx(np.average(shares, weights=lengths), abs=1e-4)
    assert result.predictions.shape == (masked, 2)


def test_the_same_tokens_are_asked_for_and_found_whatever_the_batches() -> None:
    model, split = tiny("bert", "masked-lm"), passages()
    blocks = blocks_of(split, 24)
    collate = collate_of(split.task, TOKENIZER)
    reference = predict_tokens(model, blocks, collate, batch_tokens=1)
    torch.manual_seed(5)
    for batch_tokens in (60, 100_000):
        np.testing.assert_array_equal(
            predict_tokens(model, blocks, collate, batch_tokens=batch_tokens), reference
        )


def test_outputs_that_are_no_numbers_are_refused() -> None:
    model = tiny("bert", "masked-lm")
    with torch.no_grad():
        model.cls.predictions.bias.fill_(torch.nan)
    with pytest.raises(ModelError, match="NaN or infinite"):
        evaluate_split(model, TOKENIZER, passages(), 32)
