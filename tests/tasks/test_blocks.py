"""Passages in blocks, and what a masked language model is asked for."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.words import python_tokenizer, word_tokenizer
from tombola.errors import DataError
from tombola.tasks import Blocks, MaskTokens, Split, Task, collate_of, encode

WORDS = [f"w{i}" for i in range(995)]
TOKENIZER = word_tokenizer([" ".join(WORDS)], max_length=10_000)
MASK, PAD = TOKENIZER.mask_token_id, TOKENIZER.pad_token_id


def passages(count: int, words: int = 50, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    texts = [(" ".join(rng.choice(WORDS, size=words)),) for _ in range(count)]
    return Split(Task.named("wikitext"), "train", texts, [None] * count, [str(i) for i in range(count)], "")


def everything(blocks: Blocks, collate: MaskTokens, size: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and labels of all blocks of equal length."""
    batches = [
        collate([blocks[i] for i in range(start, min(start + size, len(blocks)))])
        for start in range(0, len(blocks), size)
    ]
    return tuple(torch.cat([batch[name] for batch in batches]) for name in ("input_ids", "labels"))  # type: ignore


@pytest.mark.parametrize("name", ["wiki.train.raw", "wiki.train.tokens", "train.txt", "train.raw.gz"])
def test_passages_are_the_lines_that_are_not_blank(tmp_path: Path, name: str) -> None:
    (tmp_path / "wikitext-2").mkdir()
    content = b' \n = Title = \n\n A first\tline . \n A second one , "quoted" . \n'
    (tmp_path / "wikitext-2" / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    split = Task.named("wikitext").load("train", tmp_path)
    assert split.texts == [("= Title =",), ("A first\tline .",), ('A second one , "quoted" .',)]
    assert split.labels == [None] * 3
    assert len(split.sample(2, seed=1)) == 2
    assert split.fingerprint != split.select([0, 1]).fingerprint
    with pytest.raises(DataError, match="masked-lm task, which has no classes"):
        split.sample(2, seed=1, balanced=True)


def test_a_users_text_is_a_task_by_its_yaml(tmp_path: Path) -> None:
    (tmp_path / "novel").write_text("Call me Ishmael.\n\nSome years ago\n")
    (tmp_path / "rows.jsonl").write_text('{"text": "one"}\n{"text": " "}\n{"text": "two"}\n')
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, version: 1, kind: masked-lm, text: text, metrics: [masked_accuracy],"
        " source: {files: {train: novel, validation: rows.jsonl}}}"
    )
    task = Task.from_file(tmp_path / "mine.yaml")
    assert task.load("train").texts == [("Call me Ishmael.",), ("Some years ago",)]
    assert task.load("validation").texts == [("one",), ("two",)]


def test_a_tokenizer_written_in_python_has_special_tokens_too(tmp_path: Path) -> None:
    tokenizer = python_tokenizer(tmp_path)
    split = Split(Task.named("wikitext"), "train", [("f e d",), ("c b",)], [None] * 2, ["0", "1"], "")
    blocks = encode(split, tokenizer, 5)
    tokens = [tokenizer.convert_ids_to_tokens(blocks[i]["input_ids"]) for i in range(2)]
    assert tokens == [["<s>", "f", "e", "d", "</s>"], ["<s>", "c", "b", "</s>"]]


def test_blocks_hold_all_tokens_in_order_with_special_tokens_around_each() -> None:
    split = passages(7, words=11)
    blocks = encode(split, TOKENIZER, 16)
    assert isinstance(blocks, Blocks)
    assert len(blocks) == 6
    assert blocks.lengths.tolist() == [16] * 5 + [77 - 5 * 14 + 2]
    packed = []
    for i in range(len(blocks)):
        first, *middle, last = blocks[i]["input_ids"]
        assert (first, last) == (TOKENIZER.cls_token_id, TOKENIZER.sep_token_id)
        assert blocks[i]["labels"] == [-100, *middle, -100]
        packed += middle
    assert (
        packed == TOKENIZER(" ".join(text for (text,) in split.texts), add_special_tokens=False)["input_ids"]
    )
    with pytest.raises(DataError, match="no room for text besides the special tokens"):
        encode(split, TOKENIZER, 2)


def test_15_percent_are_asked_for_and_hidden_80_10_10() -> None:
    blocks = encode(passages(1200, words=126), TOKENIZER, 128)
    inputs, labels = everything(blocks, MaskTokens(TOKENIZER))
    asked = labels != -100
    original = torch.cat([torch.tensor(blocks[i]["input_ids"])[None] for i in range(len(blocks))])
    words = original >= 5
    assert not asked[~words].any()  # [CLS] and [SEP]
    assert torch.equal(inputs[~asked], original[~asked])
    assert torch.equal(labels[asked], original[asked])
    n = int(words.sum())
    assert abs(int(asked.sum()) / n - 0.15) < 4 * (0.15 * 0.85 / n) ** 0.5
    masked = (inputs[asked] == MASK).double().mean().item()
    same = (inputs[asked] == original[asked]).double().mean().item()
    error = 4 * (0.8 * 0.2 / int(asked.sum())) ** 0.5
    assert masked == pytest.approx(0.8 + 0.1 / 1000, abs=error)
    assert same == pytest.approx(0.1 + 0.1 / 1000, abs=error)
    replaced = inputs[asked & (inputs != original) & (inputs != MASK)]
    assert replaced.unique().numel() > 0.85 * 1000  # any word of the vocabulary
    by_position = asked[:, 1:-1].double().mean(dim=0)
    assert (by_position - 0.15).abs().max() < 5 * (0.15 * 0.85 / len(blocks)) ** 0.5


def test_unknown_words_and_special_tokens_in_the_text_are_never_asked_for() -> None:
    split = passages(40)
    split = Split(
        split.task, "train", [(f"{text} ? [MASK]",) for (text,) in split.texts], split.labels, split.ids, ""
    )
    _, labels = everything(encode(split, TOKENIZER, 54), MaskTokens(TOKENIZER))
    asked = labels[labels != -100]
    assert len(asked) > 200
    assert (asked >= 5).all()


def test_every_block_is_asked_for_something() -> None:
    blocks = encode(passages(300, words=2), TOKENIZER, 4)
    _, labels = everything(blocks, MaskTokens(TOKENIZER))
    assert ((labels != -100).sum(dim=1) >= 1).all()


def test_masks_depend_on_block_seed_and_epoch_but_not_on_the_batch() -> None:
    blocks = encode(passages(70), TOKENIZER, 52)
    assert set(blocks.lengths.tolist()) == {52}
    reference = everything(blocks, MaskTokens(TOKENIZER, seed=3))
    torch.manual_seed(9)
    for size in (1, 7, 70):
        again = everything(blocks, MaskTokens(TOKENIZER, seed=3), size)
        assert all(torch.equal(one, two) for one, two in zip(reference, again, strict=True))
    backwards = MaskTokens(TOKENIZER, seed=3)([blocks[i] for i in reversed(range(70))])
    assert torch.equal(backwards["input_ids"].flip(0), reference[0])
    other_seed = everything(blocks, MaskTokens(TOKENIZER, seed=4))
    later = MaskTokens(TOKENIZER, seed=3)
    later.set_epoch(1)
    for other in (other_seed, everything(blocks, later)):
        overlap = ((other[1] != -100) & (reference[1] != -100)).sum() / (reference[1] != -100).sum()
        assert overlap == pytest.approx(0.15, abs=0.06)


def test_shorter_blocks_are_padded_and_padding_is_not_asked_for() -> None:
    blocks = encode(passages(1, words=20), TOKENIZER, 16)
    collate = collate_of(Task.named("wikitext"), TOKENIZER)
    batch = collate([blocks[0], blocks[1]])
    assert batch["input_ids"].shape == (2, 16)
    assert (batch["input_ids"][1, 8:] == PAD).all()
    assert (batch["labels"][1, 8:] == -100).all()
    assert batch["attention_mask"].sum(dim=1).tolist() == [16, 8]


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    plain = word_tokenizer(["a"])
    plain.mask_token = None
    with pytest.raises(DataError, match="no mask token"):
        MaskTokens(plain)
