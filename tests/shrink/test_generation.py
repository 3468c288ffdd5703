"""Greedy text of shrunk decoders, with the cache: that of the masked model, token for token."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.shrink.masks import half
from tests.shrink.test_shrinking import masked
from tests.shrink.test_uniform import FREE, four_layers, mask_of
from tests.tiny import DECODERS, token_ids
from tombola.masks import Mask, Units
from tombola.shrink import shrink
from tombola.shrink.uniform import shrink_uniformly

TOKENS, PROMPT = 100, 6
TYPES = [
    "gpt2",
    "llama",
    *(pytest.param(one, marks=pytest.mark.thorough) for one in DECODERS if one not in ("gpt2", "llama")),
]
OWN = {
    "gpt2": {"n_positions": 128},
    "gemma3_text": {"sliding_window": 16},
    "modernbert-decoder": {"sliding_window": 16, "local_attention": 16},
    "mistral": {"sliding_window": 16},
}


def decoder(model_type: str) -> PreTrainedModel:
    settings = {"max_position_embeddings": 128, "tie_word_embeddings": False, **OWN.get(model_type, {})}
    return four_layers(model_type, "causal-lm", **settings)


def greedy(model: PreTrainedModel) -> Tensor:
    settings = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "pad_token_id": 0}
    text: Tensor = model.generate(token_ids(2, PROMPT), **settings)
    assert text.shape == (2, PROMPT + TOKENS)
    assert len(text[:, PROMPT:].unique()) > 2  # no model that says one word all the time
    return text


@torch.no_grad()
def says(model: PreTrainedModel, text: Tensor) -> bool:
    """Whether this is the model's own greedy text: each token is its choice after all before, without a cache."""
    logits = model(input_ids=text[:, :-1], use_cache=False).logits[:, PROMPT - 1 :]
    if model.generation_config.eos_token_id is not None:  # as long as the text is not over
        logits[..., model.generation_config.eos_token_id] = -torch.inf
    return torch.equal(logits.argmax(-1), text[:, PROMPT:])


@pytest.mark.parametrize("granularity", ["head+neuron", "layer"])
@pytest.mark.parametrize("model_type", TYPES)
def test_a_free_layout_says_what_the_masked_model_says(model_type: str, granularity: str) -> None:
    model = decoder(model_type)
    mask = half(model, granularity, seed=1, empty=1)
    assert 0 < mask.removed < mask.count
    small = shrink(model, mask)
    text = greedy(small)
    assert says(masked(model, mask), text)
    assert says(small, text)
    assert not says(model, text)


@pytest.mark.parametrize("model_type", DECODERS)
@torch.no_grad()
def test_a_first_layer_without_heads_counts_the_tokens_in_the_cache(model_type: str) -> None:
    model = decoder(model_type)
    small = shrink(model, half(model, "head", seed=1, empty=0))
    text = token_ids(2, PROMPT + 3)
    past = small(input_ids=text[:, :PROMPT], use_cache=True).past_key_values
    assert past.get_seq_length() == PROMPT
    found = small(input_ids=text[:, PROMPT:], past_key_values=past).logits
    expected = small(input_ids=text, use_cache=False).logits[:, PROMPT:]
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("model_type", TYPES)
def test_a_uniform_layout_says_it_in_plain_transformers(model_type: str, tmp_path: Path) -> None:
    """Whole KV groups, neurons of gated FFNs: as many in every layer."""
    model = decoder(model_type)
    mask = mask_of(model, (0, 1, 2, 3), 1 if model_type in FREE else 4, 16)
    shrink_uniformly(model, mask).save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.num_parameters() < model.num_parameters()
    assert says(masked(model, mask), greedy(again))


@pytest.mark.parametrize("model_type", TYPES)
def test_a_model_with_fewer_layers_says_it_too(model_type: str, tmp_path: Path) -> None:
    """A layer without weights and biases passes the residual on, as if it were not there."""
    model = decoder(model_type)
    units = Units.of(model, "layer")
    mask = Mask.from_bools(
        units, {group.name: torch.tensor([group.layer in (0, 3)]) for group in units.groups}
    )
    shrink_uniformly(model, mask).save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert says(masked(model, mask), greedy(again))
