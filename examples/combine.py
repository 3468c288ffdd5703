"""Combine in one search what five code bases do separately: heads, a learned mask, PoE and FreeLB.

A word in front of the training texts gives the label away and is wrong at test time (`validation+anti`).

    python examples/combine.py
"""

import tombola

DEBIASED = {"kind": "poe"}
RECIPE = {
    "name": "combined",
    "model": "minilm",
    "task": "reviews",
    "data": {"train": 160, "evaluation": 100, "synthetic_bias": {"share": 0.9, "right": 0.9}},
    "bias": {"method": "synthetic"},
    "train": {"epochs": 1, "learning_rate": 2e-4, "batch_size": 16, "max_length": 32},
    "draw": {"sparsity": 0.25},
    "evaluate": {"on": ["validation", "validation+anti"]},
    "variants": {
        "dense": {"search": None},
        "robust heads": {
            "train": {"loss": DEBIASED},
            "search": {
                "method": "learned",
                "units": "head",
                "train": {"epochs": 1, "adversary": {"kind": "freelb", "steps": 2, "step_size": 0.03}},
            },
        },
    },
}


def main() -> None:
    result = tombola.run(RECIPE)
    for row in result.summaries():
        scores = ", ".join(f"{on} {score.mean:.0%}" for on, score in row.scores.items())
        print(f"{row.variant}, {row.sparsity:.0%} of the weights removed: {scores}")


if __name__ == "__main__":
    main()
