"""Settings that have no effect beside the others, or cannot work with them, are refused when planning."""

from typing import Any

import pytest

from tombola.errors import RecipeError
from tombola.recipe.grid import expand

HEADS: dict[str, Any] = {"method": "importance", "units": "head"}
JOINT: dict[str, Any] = {"method": "importance", "units": "head+ffn"}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"train": {"distill": {"layers": "last"}}}, r"train\.distill: layers: .* set hidden above 0"),
        ({"train": {"distill": {"weight": 0}}}, r"train\.distill: weight: 0 learns nothing from the teacher"),
        (
            {"train": {"distill": {"weight": 0, "hidden": 1, "temperature": 4}}},
            r"train\.distill: temperature: has no effect with weight: 0",
        ),
        (
            {"train": {"distill": {"weight": 1.0}, "loss": {"kind": "poe"}}, "bias": {"method": "shallow"}},
            r"train: loss: has no effect with distill\.weight: 1",
        ),
        ({"train": {"clip": 0, "clip_per": "tensor"}}, r"train: clip_per: tensor has no effect with clip: 0"),
        (
            {"train": {"epochs": 2, "adversary": {"kind": "attack", "after": 1, "every": 2}}},
            r"train: adversary: attacks first at the start of epoch 3 \(after \+ every\), but the training has 2:",
        ),
        (
            {"train": {"augment": {"of": [{"kind": "synonyms", "min_cosine": 0.7}]}}},
            r"min_cosine: only works with source: neighbours or both",
        ),
        (
            {"bias": {"method": "shallow", "predictions": "in_sample", "folds": 3}},
            r"bias: folds: only works with predictions: out_of_fold",
        ),
        (
            {"defend": {"kind": "spelling", "context": False, "max_pairs": 10}},
            r"max_pairs: only works with context: true",
        ),
        ({"train": {"select": {"kind": "first", "gamma": 0.2}}}, r"gamma: only works with kind: ensemble"),
        (
            {"train": {"select": {"kind": "second", "every": 2}}},
            r"every: second makes a new selection in every step",
        ),
        ({"search": {**HEADS, "ffn_ratio": 0.5}}, r"search: ffn_ratio: needs units with heads and another"),
        ({"search": {**HEADS, "units": "ffn", "min_heads": 2}}, r"search: min_heads: needs units with heads"),
        ({"search": {**JOINT, "ffn_ratio": 0.5}, "draw": {"heads": 2}}, r"replace search\.ffn_ratio"),
        (
            {"search": {"method": "layers", "batches": 4}},
            r"search: batches: only works with keep: importance",
        ),
        (
            {"search": {"method": "learned", "gate": {"kind": "threshold"}, "sample": "step"}},
            r"search: sample: threshold gates have no noise",
        ),
        (
            {"search": JOINT, "retrain": {"shrink": True, "control": {"kind": "noise"}}},
            r"retrain\.control: noise needs layers of equal size",
        ),
        (
            {"search": HEADS, "retrain": {"shrink": True, "control": {"kind": "reinitialise"}}},
            r"retrain\.control: reinitialise needs layers of equal size",
        ),
        (
            {
                "search": {"method": "magnitude", "units": "head", "start": "random"},
                "draw": {"parameters": 0.5, "rounds": 2},
                "retrain": {"shrink": True},
            },
            r"search\.start: random scores new weights",
        ),
        (
            {
                "search": HEADS,
                "retrain": {"shrink": True, "control": {"kind": "shuffle", "across": "layers"}},
            },
            r"retrain\.control: shuffle needs layers of equal size",
        ),
    ],
)
def test_it_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecipeError, match=complaint):
        expand({"model": "minilm", "task": "reviews", **changes})
