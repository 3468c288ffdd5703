"""An architecture that Tombola does not know: say where it keeps its heads and FFNs.

python examples/own_family.py
"""

from transformers import AutoConfig, AutoModelForSequenceClassification

import tombola
from tombola.families import register_family

register_family(
    {
        "name": "albert",
        "model_types": ["albert"],
        "norm": "post",
        "heads": "num_attention_heads",
        "layers": "encoder.albert_layer_groups.0.albert_layers",
        "attention": {
            **{name: f"attention.{name}" for name in ("query", "key", "value")},
            "output": "attention.dense",
        },
        "ffn": {"up": "ffn", "down": "ffn_output"},
        "pooler": "pooler",
    }
)

if __name__ == "__main__":
    sizes = {"hidden_size": 64, "embedding_size": 32, "num_attention_heads": 4, "intermediate_size": 128}
    config = AutoConfig.for_model("albert", **sizes, num_hidden_layers=1, vocab_size=1000)
    model = AutoModelForSequenceClassification.from_config(config)
    for granularity in ("head", "neuron", "weight"):
        units = tombola.Units.of(model, granularity)
        mask = tombola.draw(tombola.Scores.magnitude(units, model), sparsity=0.5)
        print(f"{units.count} {granularity}s, {mask.removed} of them removed")
