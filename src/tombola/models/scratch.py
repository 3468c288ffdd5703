"""Models made from scratch: a small decoder with its own tokenizer, built only from bundled data.

They are untrained, and serve to try recipes without a download.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.foundations.folders import cache_folder
from tombola.foundations.paths import temporary_beside
from tombola.foundations.quiet import quiet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SCRATCH: dict[str, dict[str, Any]] = {
    "tiny-decoder": {
        "model_type": "llama",
        "vocab_size": 2048,
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 352,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 1,
    }
}
"""The configs, by name."""
ABOUT = {
    "tiny-decoder": "a Llama with 1 M parameters, built from scratch; its tokenizer is fitted to the bundled reviews"
}
TEXTS = ("reviews", "reviews_product", "reviews_newspaper", "reviews_tweets")
"""The tasks whose training texts the tokenizer is trained on."""
END, PADDING = "<|endoftext|>", "<|padding|>"
VERSION = 1
"""Increase it when the same config gives another model."""


def made_from_scratch(name: str) -> Path:
    """Return the folder of a model of `SCRATCH`, which is built on first use and always the same.

    Args:
        name: The model.
    """
    content = json.dumps([VERSION, SCRATCH[name]], sort_keys=True).encode()
    folder = cache_folder() / "models" / f"{name}-{hashlib.blake2b(content, digest_size=6).hexdigest()}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = temporary_beside(folder)
    try:
        _write(SCRATCH[name], partial)
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process may have been faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _write(sizes: dict[str, Any], folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = _tokenizer(sizes["vocab_size"], sizes["max_position_embeddings"])
    config = AutoConfig.for_model(**{**sizes, "vocab_size": len(tokenizer)})
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _tokenizer(size: int, length: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on the bundled texts. (Sennrich et al. 2016; bytes as in GPT-2)"""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    from tombola.tasks import Task

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END, PADDING], initial_alphabet=alphabet, show_progress=False
    )
    texts = (text for task in TEXTS for (text,) in Task.named(task).load("train").texts)
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=length,
        bos_token=END,
        eos_token=END,
        pad_token=PADDING,
    )
