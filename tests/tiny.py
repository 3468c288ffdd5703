"""Tiny random models of every family, built from their configs: nothing is downloaded."""

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

VOCABULARY = 64
SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {"num_key_value_heads": 2}
OWN: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24},
    "electra": {"embedding_size": 16},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 8,
        "max_relative_positions": 16,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": False,
    },
    "modernbert": {"cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 24, "n_positions": 64},
    "llama": GROUPED,
    "mistral": GROUPED,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "eurobert": {**GROUPED, "mask_token_id": 4},
    "smollm3": {**GROUPED, "no_rope_layer_interval": 2},
    "gemma3_text": {**GROUPED, "head_dim": 4, "query_pre_attn_scalar": 4, "sliding_window_pattern": 2},
    "phi3": GROUPED,
    "nomic_bert": {"type_vocab_size": 2},
    "modernbert-decoder": {"cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2},
    "albert": {"embedding_size": 16, "inner_group_num": 2},
}
RENAMED = {
    "distilbert": {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"},
    "gpt2": {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"},
}
MODEL_TYPES = [
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "distilbert",
    "electra",
    "mpnet",
    "deberta-v2",
    "modernbert",
    "gpt2",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "eurobert",
    "nomic_bert",
    "xlm-roberta-xl",
    "albert",
    "smollm3",
    "gemma3_text",
    "phi3",
    "gpt_neox",
    "modernbert-decoder",
]
LOOPED = {"albert"}
"""Types that pass the same layers several times."""
CONVERTED = {"nomic_bert"}
"""Types whose files store the layers in another form than the model has in memory."""
GROUPED_TYPES = {"llama", "mistral", "qwen2", "qwen3", "eurobert", "smollm3", "gemma3_text", "phi3"}
"""The model types whose tiny models have 4 heads in 2 groups with a key and a value each."""
DECODERS = [
    "gpt2",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "smollm3",
    "gemma3_text",
    "phi3",
    "gpt_neox",
    "modernbert-decoder",
]
"""The model types that are causal language models."""
HEADS = {
    "base": AutoModel,
    "sequence-classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
    "masked-lm": AutoModelForMaskedLM,
    "causal-lm": AutoModelForCausalLM,
    "question-answering": AutoModelForQuestionAnswering,
}


def tiny(
    model_type: str, head: str = "sequence-classification", *, seed: int = 0, **overrides: Any
) -> PreTrainedModel:
    """A model with 2 layers, 4 heads and a hidden size of 16, in eval mode, the same for the same seed.

    Every parameter is random, biases and LayerNorms too, so that nothing is zero or one by chance.
    """
    sizes = {name: size for name, size in SIZES.items() if name not in RENAMED.get(model_type, ())}
    config = AutoConfig.for_model(model_type, **{**sizes, **OWN.get(model_type, {}), **overrides})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = HEADS[head].from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                centre = 1.0 if parameter.dim() == 1 and parameter.eq(1).all() else 0.0
                parameter.normal_(centre, 0.3)
    return model.eval()


def token_ids(batch: int = 3, length: int = 7, seed: int = 0) -> torch.Tensor:
    """Random tokens of the tiny models' vocabulary, none of them special."""
    return torch.randint(5, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))
