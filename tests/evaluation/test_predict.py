"""Length-sorted batches give what one example at a time gives, in the order of the data."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel

from tests.tiny import VOCABULARY, tiny
from tests.words import word_tokenizer, xlnet_tokenizer
from tombola.errors import ModelError
from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.metrics import metrics
from tombola.evaluation.predict import LARGEST_BATCH, batches, predict
from tombola.tasks import Collate, Encoded, Split, Task, encode, fitting_length

pytestmark = pytest.mark.portable

WORDS = [f"w{i}" for i in range(VOCABULARY - 5)]
SEGMENTS = word_tokenizer([" ".join(WORDS)])
PLAIN = word_tokenizer([" ".join(WORDS)], segments=False)
TYPES = ["bert", "roberta", "distilbert", "mpnet", "modernbert", "gpt2", "llama"]


def split_of(task: str, n: int = 23, longest: int = 30, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    found = Task.named(task)
    texts = [
        tuple(" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in found.text) for _ in range(n)
    ]
    labels = rng.integers(found.num_labels, size=n).tolist() if found.labels else rng.random(n).tolist()
    return Split(found, "validation", texts, labels, [str(i) for i in range(n)], "memory")


@torch.no_grad()
def one_by_one(model: PreTrainedModel, encoded: Encoded) -> np.ndarray:
    rows = []
    for i in range(len(encoded)):
        inputs = {name: torch.tensor([encoded[i][name]]) for name in encoded.inputs}
        rows.append(model(**inputs).logits[0].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("model_type", TYPES)
@pytest.mark.parametrize("batch_tokens", [1, 100])
def test_predict_equals_one_by_one(model_type: str, batch_tokens: int) -> None:
    model = tiny(model_type)
    encoded = encode(split_of("sst2"), PLAIN, 64)
    logits = predict(model, encoded, Collate(PLAIN), batch_tokens=batch_tokens)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)


@pytest.mark.parametrize("model_type", ["gpt2", "distilbert"])
def test_a_text_keeps_its_positions_whatever_side_the_tokenizer_pads(model_type: str) -> None:
    model, left = tiny(model_type), copy.deepcopy(PLAIN)
    left.padding_side = "left"
    encoded = encode(split_of("sst2"), left, 64)
    logits = predict(model, encoded, Collate(left), batch_tokens=100)
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)


def test_a_cls_that_ends_texts_stays_the_last() -> None:
    tokenizer = xlnet_tokenizer()
    config = AutoConfig.for_model(
        "xlnet", d_model=16, n_layer=2, n_head=4, d_inner=24, vocab_size=len(tokenizer), pad_token_id=5
    )
    model = AutoModelForSequenceClassification.from_config(config).eval()
    task = Task.named("sst2")
    texts = [("a b c",), ("d",), ("e f a b c d e",), ("b a",)]
    split = Split(task, "validation", texts, [0, 1, 0, 1], list("0123"), "memory")
    encoded = encode(split, tokenizer, fitting_length(64, model.config))
    logits = predict(model, encoded, Collate(tokenizer), batch_tokens=100)
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)


def test_a_decoder_without_padding_token_is_lent_one() -> None:
    model = tiny("gpt2", pad_token_id=None)
    encoded = encode(split_of("sst2"), PLAIN, 64)
    logits = predict(model, encoded, Collate(PLAIN))
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)
    assert model.config.pad_token_id is None


def test_a_decoder_finds_the_last_token_before_the_padding_of_the_batches() -> None:
    model = tiny("gpt2", pad_token_id=PLAIN.mask_token_id)
    encoded = encode(split_of("sst2"), PLAIN, 64)
    logits = predict(model, encoded, Collate(PLAIN))
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)
    assert model.config.pad_token_id == PLAIN.mask_token_id


def test_segments_reach_the_model() -> None:
    model = tiny("bert")
    encoded = encode(split_of("rte", longest=12), SEGMENTS, 64)
    logits = predict(model, encoded, Collate(SEGMENTS))
    np.testing.assert_allclose(logits, one_by_one(model, encoded), atol=2e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_put_back_even_after_an_error(training: bool) -> None:
    model = tiny("bert").train(training)
    encoded = encode(split_of("sst2"), PLAIN, 64)

    def stop(_: int) -> None:
        assert not model.training
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(model, encoded, Collate(PLAIN), progress=stop)
    assert model.training is training


@pytest.mark.bf16
def test_progress_adds_up_and_bf16_is_close() -> None:
    model = tiny("bert")
    encoded = encode(split_of("sst2"), PLAIN, 64)
    done: list[int] = []
    exact = predict(model, encoded, Collate(PLAIN), batch_tokens=64, progress=done.append)
    rough = predict(model, encoded, Collate(PLAIN), precision="bf16")
    assert sum(done) == len(encoded)
    assert len(done) > 3
    assert rough.dtype == np.float32
    assert 0 < np.abs(rough - exact).max() < 0.1


@given(arrays(np.int64, st.integers(1, 200), elements=st.integers(1, 60)), st.integers(1, 300))
def test_batches_cover_all_once_within_the_budget(lengths: np.ndarray, budget: int) -> None:
    cut = list(batches(lengths, budget))
    assert sorted(np.concatenate(cut).tolist()) == list(range(len(lengths)))
    for members in cut:
        assert len(members) <= LARGEST_BATCH
        assert len(members) == 1 or lengths[members].max() * len(members) <= budget


def named(labels: list[str]) -> PreTrainedModel:
    model = tiny("bert", num_labels=len(labels))
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: i for i, label in enumerate(labels)}
    return model


def test_evaluate_split_is_predict_and_score() -> None:
    model, split = tiny("bert", num_labels=3), split_of("mnli", longest=10)
    result = evaluate_split(model, SEGMENTS, split)
    expected = predict(model, encode(split, SEGMENTS, 128), Collate(SEGMENTS))
    np.testing.assert_array_equal(result.predictions, expected)
    assert result.scores == {"accuracy": metrics["accuracy"](expected, np.array(split.labels))}
    assert result.notes == []


def test_labels_are_matched_by_name_not_by_position() -> None:
    split = split_of("mnli", longest=10)
    task_order = ["entailment", "neutral", "contradiction"]
    straight = evaluate_split(named(task_order), SEGMENTS, split)
    assert straight.notes == []
    turned = evaluate_split(named(["CONTRADICTION", "ENTAILMENT", "NEUTRAL"]), SEGMENTS, split)
    np.testing.assert_array_equal(turned.predictions, straight.predictions[:, [1, 2, 0]])
    assert "['CONTRADICTION', 'ENTAILMENT', 'NEUTRAL']" in turned.notes[0]
    assert str(task_order) in turned.notes[0]


def test_labels_of_another_task_are_refused() -> None:
    with pytest.raises(ModelError, match=r"\['world', 'sports'\].*\['entailment', 'not_entailment'\]"):
        evaluate_split(named(["world", "sports"]), SEGMENTS, split_of("rte"))
    with pytest.raises(ModelError, match="has 3 outputs, but the task 'rte' needs 2"):
        evaluate_split(tiny("bert", num_labels=3), SEGMENTS, split_of("rte"))


def test_regression_and_inputs_beyond_the_last_position() -> None:
    split = split_of("stsb", n=6, longest=100)
    long = word_tokenizer([" ".join(WORDS)], max_length=10_000)
    result = evaluate_split(tiny("bert", num_labels=1), long, split, max_length=512)
    assert result.predictions.shape == (6, 1)
    assert list(result.scores) == ["pearson", "spearman"]
