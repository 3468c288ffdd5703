"""A toy task for tiny models, and one call that trains on it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from tests.tiny import VOCABULARY
from tests.words import word_tokenizer
from tombola.masks import Mask, Units
from tombola.tasks import Collate, Encoded
from tombola.training import TrainLog, TrainSettings, train

TOKENIZER = word_tokenizer([" ".join(f"w{i}" for i in range(VOCABULARY - 5))])


def toy_data(examples: int = 40, regression: bool = False, seed: int = 0) -> Encoded:
    """Sentences of 3 to 12 random words; the label says whether the first word is in the vocabulary's upper half."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 13, examples))])
    tokens = rng.integers(5, VOCABULARY, offsets[-1]).astype(np.int32)
    first = tokens[offsets[:-1]]
    labels = (
        (first / VOCABULARY).astype(np.float32) if regression else (first > VOCABULARY // 2).astype(np.int64)
    )
    return Encoded({"input_ids": tokens}, offsets, labels)


def toy_train(
    model: PreTrainedModel,
    folder: Path,
    data: Encoded | None = None,
    seed: int = 1,
    regression: bool = False,
    **options: Any,
) -> TrainLog:
    """Train on the toy task; options that are settings go into the settings, the others to `train`."""
    settings = {name: options.pop(name) for name in list(options) if name in TrainSettings.model_fields}
    settings = {"epochs": 2, "batch_size": 8, "learning_rate": 1e-2, "checkpoint_minutes": 999.0, **settings}
    return train(
        model,
        data if data is not None else toy_data(),
        TrainSettings(**settings),
        **{
            "collate": Collate(TOKENIZER, regression),
            "seed": seed,
            "precision": "fp32",
            "folder": folder,
            **options,
        },
    )


def random_mask(
    model: PreTrainedModel, granularity: Any = "weight", kept: float = 0.3, seed: int = 0
) -> Mask:
    """A mask that keeps about this share of the units."""
    generator = torch.Generator().manual_seed(seed)
    units = Units.of(model, granularity)
    return Mask.from_bools(
        units, {group.name: torch.rand(group.shape, generator=generator) < kept for group in units.groups}
    )


def same_weights(one: PreTrainedModel, other: PreTrainedModel) -> bool:
    """Whether two models are equal bit for bit."""
    others = other.state_dict()
    return all(torch.equal(value, others[name]) for name, value in one.state_dict().items())
