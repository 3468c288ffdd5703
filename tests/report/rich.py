"""A result that has something for every section of the page, with hostile text wherever data may bring it."""

from pathlib import Path
from typing import Any

import torch

from tests.results.builder import attacked, cell, result
from tests.tiny import tiny
from tombola.attacks.report import AttackReport, Example
from tombola.masks import Mask, Scores, Units, draw
from tombola.pipeline.stages.base import Drawn
from tombola.pipeline.stages.train import Frozen
from tombola.results.record import CellResult
from tombola.results.result import Result
from tombola.store.manifest import write_manifest

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&<b>"
PARAMETERS = 22_713_986
SPARSITIES = (0.2, 0.4, 0.6)
CURVES = {
    "dense": {None: 0.80},
    "winning": {0.2: 0.825, 0.4: 0.77, 0.6: 0.55},
    "random": {0.2: 0.70, 0.4: 0.62, 0.6: 0.54},
    "losing": {0.2: 0.60, 0.4: 0.52, 0.6: 0.51},
}
TARGETS = {"validation": 0.01, "test": 0.0, "reviews_tweets/test": -0.1}
ATTACK = f"attack/{'a1' * 12}"


def rich_result(folder: Path, store: Path, seeds: int = 3) -> Result:
    """A dense model with winning, random and losing tickets of heads; an attack; selective training."""
    masks = _masks()
    cells = [
        _cell(variant, sparsity, value + 0.004 * (seed - 1), seed, masks)
        for variant, curve in CURVES.items()
        for sparsity, value in curve.items()
        for seed in range(seeds)
    ]
    for one in cells:
        if one.ticket:
            ticket = folder / one.ticket
            ticket.mkdir(parents=True, exist_ok=True)
            masks[one.axes["draw.sparsity"]].save(ticket / "mask.safetensors")
    keep_attack(store)
    recipe = {
        "name": "rich",
        "about": HOSTILE,
        "model": "minilm",
        "task": "reviews",
        "seed": list(range(seeds)),
    }
    return result(
        *cells,
        folder=folder,
        name=f"rich {HOSTILE}",
        about=f"Everything at once {HOSTILE}",
        recipe=recipe,
        versions={"python": "3.11", "tombola": HOSTILE},
    )


def transferred(folder: Path) -> Result:
    """Masks of two tasks, one with a hostile name, under the training of two."""
    scores = {("sst2", "sst2"): 0.81, ("sst2", "rte"): 0.65, (HOSTILE, "sst2"): 0.6}
    return result(
        *(cell("dense", value, task=task) for task, value in (("sst2", 0.8), ("rte", 0.7))),
        *(
            cell("transferred", value, 0.5, task=target, **{"search.task": source})
            for (source, target), value in scores.items()
        ),
        folder=folder,
    )


def keep_attack(store: Path) -> None:
    """A finished attack in a store."""
    folder = store / ATTACK
    _attack_report().save(folder)
    write_manifest(folder, {"stage": {"kind": "attack"}, "label": "attack", "made": {}})


def _masks() -> dict[float, Mask]:
    units = Units.of(tiny("bert"), "head")
    values = torch.rand(units.count, generator=torch.Generator().manual_seed(0))
    scores = Scores(
        units, dict(zip(units.by_name, values.split([g.count for g in units.by_name.values()]), strict=True))
    )
    return {sparsity: draw(scores, sparsity=sparsity) for sparsity in SPARSITIES}


def _cell(
    variant: str, sparsity: float | None, score: float, seed: int, masks: dict[float, Mask]
) -> CellResult:
    under = score - 0.5 + 0.3 * (sparsity or 0)
    found: dict[str, Any] = {on: score + shift for on, shift in TARGETS.items()}
    made = cell(
        variant,
        found,
        sparsity,
        seed,
        under={"textfooler": under},
        recipe={}
        if sparsity is None
        else {"search": {"method": "importance", "units": "head", "order": variant}},
        curves={"textfooler": [attacked(under * share) for share in (0.4, 0.7, 1.0)]}
        if sparsity in (None, 0.2)
        else {},
        frozen=Frozen(
            steps=120,
            tensors={f"{layer}/{kind}": layer / 4 for layer in range(3) for kind in ("query", "up")},
        )
        if variant == "winning" and sparsity == 0.2
        else None,
        ticket=None if sparsity is None else f"tickets/{variant}-{sparsity}",
        mask=None
        if sparsity is None
        else Drawn.of(masks[sparsity], PARAMETERS).model_copy(
            update={"weight_sparsity": sparsity * 0.9, "total_sparsity": sparsity * 0.5}
        ),
    )
    kept = {"textfooler": ATTACK} if variant in ("dense", "winning") else {}
    return made.model_copy(update={"stages": made.stages.model_copy(update={"attacks": kept})})


def _attack_report() -> AttackReport:
    text = f"a lovely film {HOSTILE} indeed"
    examples = [
        Example(0, (text,), {1: f"pleasant{HOSTILE}"}, 1, 1, 0, 0.1, 0.8, 42, "Successful", 0.9),
        Example(1, ("dull and slow",), {}, 0, 0, 0, 0.1, 0.2, 17, "Failed"),
    ]
    return AttackReport(
        "textfooler", {}, examples, ["sentence"], ["negative", HOSTILE], seed=0, query_budget=None
    )
