"""Flat arrays hold exactly what the tokenizer gives, and batches are padded to their own longest example."""

import numpy as np
import pytest
import torch
from tokenizers import normalizers
from transformers import AutoConfig, PreTrainedTokenizerFast

from tests.words import word_tokenizer
from tombola.errors import DataError
from tombola.tasks import Collate, Split, Task, encode, position_limit

WORDS = [f"w{i}" for i in range(40)]
TOKENIZER = word_tokenizer([" ".join(WORDS)])


def split_of(texts: list[tuple[str, ...]], task: str = "rte") -> Split:
    labels = [i % 2 for i in range(len(texts))]
    return Split(Task.named(task), "train", texts, labels, [str(i) for i in range(len(texts))], "memory")


def random_texts(n: int, columns: int, longest: int = 20, seed: int = 0) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    return [
        tuple(" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(columns)) for _ in range(n)
    ]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("max_length", [8, 128])
def test_encode_equals_the_tokenizer(columns: int, max_length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tombola.tasks.encoding.CHUNK", 7)
    texts = random_texts(30, columns)
    encoded = encode(split_of(texts), TOKENIZER, max_length)
    assert len(encoded) == 30
    for i, text in enumerate(texts):
        expected = TOKENIZER(*text, truncation="longest_first", max_length=max_length)
        assert encoded[i]["input_ids"] == expected["input_ids"]
        assert encoded[i]["token_type_ids"] == expected["token_type_ids"]
        assert encoded[i]["labels"] == i % 2
        assert encoded.lengths[i] == len(expected["input_ids"]) <= max_length
    assert encoded.inputs["input_ids"].dtype == np.int32
    assert encoded.model_inputs == ["input_ids", "token_type_ids", "attention_mask"]
    assert encoded[-1] == encoded[29]
    with pytest.raises(IndexError):
        encoded[30]


def test_the_longer_text_of_a_pair_is_cut_first() -> None:
    encoded = encode(split_of([(" ".join(WORDS[:20]), "w0 w1")]), TOKENIZER, 10)
    tokens = TOKENIZER.convert_ids_to_tokens(encoded[0]["input_ids"])
    assert tokens == ["[CLS]", *WORDS[:5], "[SEP]", "w0", "w1", "[SEP]"]


def test_inputs_end_where_the_tokenizers_limit_is() -> None:
    short = word_tokenizer([" ".join(WORDS)], max_length=6, segments=False)
    encoded = encode(split_of([(" ".join(WORDS),)], "sst2"), short, 128)
    assert encoded.lengths.tolist() == [6]
    assert encoded.model_inputs == ["input_ids", "attention_mask"]


@pytest.mark.parametrize("side", ["right", "left"])
def test_collate_equals_the_tokenizers_padding_on_the_right(side: str) -> None:
    tokenizer = word_tokenizer([" ".join(WORDS)])
    tokenizer.padding_side = side
    texts = random_texts(9, 2)
    encoded = encode(split_of(texts), tokenizer, 128)
    batch = Collate(tokenizer)([encoded[i] for i in range(9)])
    first, second = zip(*texts, strict=True)
    expected = tokenizer(list(first), list(second), padding=True, padding_side="right", return_tensors="pt")
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert torch.equal(batch[name], expected[name])
    assert batch["labels"].tolist() == [i % 2 for i in range(9)]


def test_regression_labels_are_floats() -> None:
    split = Split(Task.named("stsb"), "train", [("w0", "w1")] * 2, [3.8, 5.0], ["0", "1"], "memory")
    encoded = encode(split, TOKENIZER, 16)
    batch = Collate(TOKENIZER, regression=True)([encoded[0], encoded[1]])
    assert torch.equal(batch["labels"], torch.tensor([3.8, 5.0]))


def decoder_tokenizer(**special: str) -> PreTrainedTokenizerFast:
    bare = word_tokenizer(["the end </s> good film"], segments=False).backend_tokenizer
    bare.post_processor = None
    return PreTrainedTokenizerFast(tokenizer_object=bare, unk_token="[UNK]", **special)


def test_a_decoder_without_padding_token_is_padded_with_its_end_token() -> None:
    tokenizer = decoder_tokenizer(eos_token="</s>")
    encoded = encode(split_of([("good film",), ("good",)], "sst2"), tokenizer, 16)
    collate = Collate(tokenizer)
    batch = collate([encoded[0], encoded[1]])
    assert collate.pad_id == tokenizer.eos_token_id
    assert batch["input_ids"][1, 1] == tokenizer.eos_token_id
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    with pytest.raises(DataError, match="neither a padding nor an end-of-text token"):
        Collate(decoder_tokenizer())


def test_extras_travel_with_their_examples() -> None:
    bias = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    encoded = encode(split_of(random_texts(5, 1), "sst2"), TOKENIZER, 16).with_extra("bias", bias)
    batch = Collate(TOKENIZER)([encoded[i] for i in (3, 1)])
    assert torch.equal(batch["bias"], torch.from_numpy(bias[[3, 1]]))
    with pytest.raises(DataError, match="'teacher' has 4 rows for 5 examples"):
        encoded.with_extra("teacher", bias[:4])


def test_text_without_tokens_is_named() -> None:
    tokenizer = decoder_tokenizer(eos_token="</s>")
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("~", "")
    with pytest.raises(DataError, match="no tokens in example '1'"):
        encode(split_of([("good",), ("~",)], "sst2"), tokenizer, 16)


@pytest.mark.parametrize(
    ("model_type", "limit"),
    [("bert", 512), ("roberta", 510), ("gpt2", 1024), ("xlnet", None), ("bloom", None)],
)
def test_position_limits(model_type: str, limit: int | None) -> None:
    assert position_limit(AutoConfig.for_model(model_type)) == limit
