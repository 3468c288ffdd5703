"""Add an architecture that Tombola does not know: say where it keeps its heads and FFNs.

python examples/own_family.py
"""

from transformers import AutoConfig, AutoModelForSequenceClassification

import tombola
from tombola.families import register_family

register_family(
    {
        "name": "ernie",
        "model_types": ["ernie"],
        "norm": "post",
        "heads": "num_attention_heads",
        "layers": "encoder.layer",
        "attention": {
            **{name: f"attention.self.{name}" for name in ("query", "key", "value")},
            "output": "attention.output.dense",
        },
        "ffn": {"up": "intermediate.dense", "down": "output.dense"},
        "pooler": "pooler",
    }
)

if __name__ == "__main__":
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    config = AutoConfig.for_model("ernie", **sizes, num_hidden_layers=2, vocab_size=1000)
    model = AutoModelForSequenceClassification.from_config(config)
    for granularity in ("head", "neuron", "weight"):
        units = tombola.Units.of(model, granularity)
        mask = tombola.draw(tombola.Scores.magnitude(units, model), sparsity=0.5)
        print(f"{units.count} {granularity}s, {mask.removed} of them removed")
