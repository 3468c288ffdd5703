"""Random inputs for timing and comparing models, and the outputs to compare."""

import torch
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedModel

from tombola.models.loading import TOKEN_TYPES

TOLERANCE = 1e-4
"""How far outputs may differ that should be the same, relative to the largest."""


def padding_token(config: PretrainedConfig) -> int:
    """Return the padding token of a model; 0 for one without, such as many decoders."""
    return config.pad_token_id if config.pad_token_id is not None else 0


def random_inputs(
    model: PreTrainedModel,
    batch: int,
    length: int,
    *,
    padded: bool = False,
    token_types: bool = True,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Return random tokens with their attention mask, and token types if the model has more than one.

    With `padded`, every second text is half as long and padded on the right. `token_types=False` leaves the types out,
    like a tokenizer without them; the model then uses zeros.
    """
    config, generator = model.config, torch.Generator().manual_seed(seed)
    padding = padding_token(config)
    tokens = torch.randint(1, config.vocab_size, (batch, length), generator=generator)
    tokens = (padding + tokens) % config.vocab_size  # anything but padding
    attended = torch.ones_like(tokens)
    if padded:
        attended[1::2, length // 2 :] = 0
        tokens = torch.where(attended.bool(), tokens, padding)
    inputs = {"input_ids": tokens, "attention_mask": attended}
    if token_types and getattr(config, "type_vocab_size", 0) > 1:
        segments = (torch.arange(length) >= length // 3).long()
        inputs[TOKEN_TYPES] = segments.expand(batch, length).clone() * attended
    return {name: value.to(model.device) for name, value in inputs.items()}


@torch.inference_mode()
def outputs_of(model: PreTrainedModel, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the model's output tensors by name: logits, or hidden states of a model without a head."""
    model.eval()
    return {name: value for name, value in model(**inputs).items() if isinstance(value, Tensor)}


def largest_difference(one: dict[str, Tensor], two: dict[str, Tensor]) -> float:
    """Return the largest absolute difference over all outputs."""
    return max(float((one[name].float() - two[name].float()).abs().max()) for name in one)


def agree(expected: dict[str, Tensor], found: dict[str, Tensor], tolerance: float = TOLERANCE) -> bool:
    """Return whether two models that should be the same gave the same outputs, but for rounding."""
    scale = max(1.0, *(float(value.abs().max()) for value in expected.values()))
    return largest_difference(expected, found) <= tolerance * scale
