"""A result that has something for every section of the page, with hostile text wherever data may bring it."""

from pathlib import Path
from typing import Any

import torch

from tests.tiny import tiny
from tombola.attacks.report import AttackReport, Example
from tombola.masks import Scores, Units, draw
from tombola.results.result import Result

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&<b>"
SPARSITIES = (0.2, 0.4, 0.6)
WINNING = {0.0: 0.80, 0.2: 0.82, 0.4: 0.77, 0.6: 0.55}
OTHERS = {"random": {0.2: 0.70, 0.4: 0.62, 0.6: 0.54}, "losing": {0.2: 0.60, 0.4: 0.52, 0.6: 0.51}}
TARGETS = {"validation": 0.01, "test": 0.0, "reviews_tweets/test": -0.1}


def rich_result(folder: Path, store: Path, seeds: int = 3) -> Result:
    """A dense model with winning, random and losing tickets of heads and FFNs; an attack; selective training."""
    masks = _masks()
    cells = []
    for variant, curve in {"dense": {0.0: 0.80}, "winning": WINNING, **OTHERS}.items():
        for sparsity in curve if variant == "dense" else SPARSITIES:
            for seed in range(seeds):
                cells.append(_cell(variant, sparsity, curve[sparsity] + 0.004 * (seed - 1), seed, masks))
    for cell in cells:
        if cell["ticket"]:
            ticket = folder / cell["ticket"]
            ticket.mkdir(parents=True, exist_ok=True)
            masks[cell["axes"]["draw.sparsity"]].save(ticket / "mask.safetensors")
    _attack_report().save(store / "attack" / "a1")
    search = {"method": "importance", "units": "head+ffn"}
    content = {
        "format": 1,
        "name": f"rich {HOSTILE}",
        "about": f"Everything at once {HOSTILE}",
        "recipe": {
            "name": "rich",
            "about": HOSTILE,
            "model": "minilm",
            "task": "reviews",
            "seed": list(range(seeds)),
            "draw": {"sparsity": list(SPARSITIES)},
            "evaluate": {"on": list(TARGETS)},
            "variants": {
                "dense": {"search": None},
                **{
                    order: {"search": {**search, "order": order}} for order in ("winning", "random", "losing")
                },
            },
        },
        "versions": {"python": "3.11", "tombola": HOSTILE},
        "cells": cells,
        "transfer": {
            "sources": ["sst2", HOSTILE],
            "targets": ["sst2", "rte"],
            "on": "validation",
            "difference": [[0.01, -0.05], [-0.2, None]],
        },
    }
    return Result(content, folder)


def _masks() -> dict[float, Any]:
    units = Units.of(tiny("bert"), "head")
    values = torch.rand(units.count, generator=torch.Generator().manual_seed(0))
    scores = Scores(
        units, dict(zip(units.by_name, values.split([g.count for g in units.by_name.values()]), strict=True))
    )
    return {sparsity: draw(scores, sparsity=sparsity) for sparsity in SPARSITIES}


def _cell(variant: str, sparsity: float, score: float, seed: int, masks: dict[float, Any]) -> dict[str, Any]:
    axes = {"draw.sparsity": sparsity, "seed": seed} if sparsity else {"seed": seed}
    mask = {
        "granularity": "head",
        "weight_sparsity": sparsity * 0.9,
        "total_sparsity": sparsity * 0.5,
        "parameters": 22_713_986,
    }
    scores = {
        on: {"accuracy": {"value": score + shift, "stderr": 0.02, "n": 400, "method": "binomial"}}
        for on, shift in TARGETS.items()
    }
    under = score - 0.5 + 0.3 * sparsity
    scores["textfooler"] = {"under attack": {"value": under, "stderr": 0.03, "n": 200, "method": "binomial"}}
    epochs = [
        {
            "accuracy_under_attack": under * share,
            "accuracy_under_attack_interval": [under * share - 0.05, under * share + 0.05],
        }
        for share in (0.4, 0.7, 1.0)
    ]
    return {
        "variant": variant,
        "axes": axes,
        "seed": seed,
        "label": f"{variant}-{sparsity}-{seed}",
        "precision": "fp32",
        "scores": scores,
        "attacks": {},
        "curves": {"textfooler": epochs} if sparsity in (0.0, 0.2) else {},
        "mask": mask if sparsity else None,
        "stages": {
            "model": "m",
            "mask": None,
            "attacks": {"textfooler": "a1"} if variant in ("dense", "winning") else {},
        },
        "frozen": {
            "steps": 120,
            "tensors": {f"{layer}/{kind}": layer / 4 for layer in range(3) for kind in ("query", "up")},
        }
        if variant == "winning" and sparsity == 0.2
        else None,
        "ticket": f"tickets/{variant}-{sparsity}" if sparsity else None,
    }


def _attack_report() -> AttackReport:
    text = f"a lovely film {HOSTILE} indeed"
    examples = [
        Example(0, (text,), {1: f"pleasant{HOSTILE}"}, 1, 1, 0, 0.1, 0.8, 42, "Successful", 0.9),
        Example(1, ("dull and slow",), {}, 0, 0, 0, 0.1, 0.2, 17, "Failed"),
    ]
    return AttackReport(
        "textfooler", {}, examples, ["sentence"], ["negative", HOSTILE], seed=0, query_budget=None
    )
