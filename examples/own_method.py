"""Write your own search method: settings, one function, a recipe that names it: python examples/own_method.py

A recipe file loads it with `plugins: [own_method.py]`, the command line with `--plugin examples/own_method.py`.
"""

from typing import Literal

import tombola
from tombola.search import ScorerSettings, scorer


class Depth(ScorerSettings):
    """Settings of magnitude pruning that spares later layers."""

    method: Literal["depth"] = "depth"
    factor: float = 1.1  # how much more a weight counts with every layer


@scorer(Depth)
def depth(settings: Depth, model, units, evidence) -> tombola.Scores:
    """Remove the smallest weights, from early layers first."""
    scores, layers = tombola.Scores.magnitude(units, model), {one.name: one.layer for one in units.groups}
    return tombola.Scores(units, {name: s * settings.factor ** layers[name] for name, s in scores.items()})


RECIPE = {
    "name": "own-method",
    "model": "minilm",
    "task": "reviews",
    "data": {"train": 96, "evaluation": 100},
    "train": {"epochs": 1, "learning_rate": 1e-4, "batch_size": 16, "max_length": 24},
    "search": {"method": "depth", "factor": [1.0, 1.2], "pooler": False},
    "draw": {"sparsity": 0.5},
}

if __name__ == "__main__":
    for cell in tombola.run(RECIPE).cells:
        print(cell.axes, {layer: f"{share:.0%} removed" for layer, share in cell.mask.by_layer.items()})
