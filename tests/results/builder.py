"""Results with given numbers, made of the same typed cells and recipes as those of a run."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tombola.attacks.changed_words import accuracy_by_words
from tombola.evaluation.scores import Score
from tombola.foundations.settings import checked
from tombola.pipeline.stages.attack import Attacked
from tombola.pipeline.stages.base import Drawn
from tombola.pipeline.stages.measure import Measured
from tombola.recipe.cell import Cell
from tombola.recipe.recipe import Recipe
from tombola.results.record import UNDER_ATTACK, CellResult, CellStages, RunRecord, StageCounts
from tombola.results.result import Result
from tombola.shrink.sizes import Sizes, Speedup

PARAMETERS = 1000


def score(value: float, n: int = 100) -> Score:
    """A share of `n` examples."""
    return Score.of_share(value, n)


def stage_name(kind: str, *what: str) -> str:
    """The name of a stage, the same for the same words."""
    return f"{kind}/{blake2b(repr(what).encode(), digest_size=12).hexdigest()}"


def drawn(sparsity: float, emptied: Sequence[str] = (), parameters: int = PARAMETERS) -> Drawn:
    """A mask in numbers; half of all parameters are prunable."""
    return Drawn(
        granularity="weight",
        base="f00d",
        units=parameters // 2,
        removed=round(sparsity * parameters / 2),
        sparsity=sparsity,
        weight_sparsity=sparsity,
        total_sparsity=sparsity / 2,
        parameter_sparsity=sparsity / 2,
        weights=parameters // 2,
        parameters=parameters,
        by_layer={},
        by_kind={},
        emptied=list(emptied),
    )


def attacked(under: float, clean: float = 0.9, n: int = 100) -> Attacked:
    """The figures of an attack that leaves so much accuracy; half of what it breaks takes one word, the rest seven."""
    right, broken = round(clean * n), round(clean * n) - round(under * n)
    return Attacked(
        attack="textfooler",
        n=n,
        clean_accuracy=clean,
        accuracy_under_attack=under,
        accuracy_under_attack_interval=score(under, n).interval(),
        success_rate=1 - under / clean,
        mean_queries=42.0,
        mean_changed_words=2.0,
        mean_changed_share=0.1,
        mean_similarity=0.9,
        by_changed_words=accuracy_by_words(n, right, [1] * (broken // 2) + [7] * (broken - broken // 2)),
        seconds=1.0,
        rows=100,
        similarity_rows=10,
        rows_per_second=100.0,
    )


def measured(ratio: float | None = None, milliseconds: float = 10.0, busy: str | None = None) -> Measured:
    """Sizes at two batch sizes, and a speed-up unless the model is dense."""

    def sizes(share: float) -> Sizes:
        latency = {1: milliseconds * share / 1000, 32: milliseconds * share / 50}
        return Sizes(
            parameters=round(1e6 * share),
            bytes=round(4e6 * share),
            flops=1,
            length=48,
            latency=latency,
            texts="texts of the task",
            threads=1,
            device="cpu",
        )

    if ratio is None:
        return Measured(dense=sizes(1), ticket=sizes(1))
    speedup = {
        batch: Speedup(ratio=ratio + gain, low=ratio + gain - 0.05, high=ratio + gain + 0.05, busy=busy)
        for batch, gain in ((1, 0.0), (32, 0.2))
    }
    return Measured(dense=sizes(1), ticket=sizes(1 / ratio), speedup=speedup)


def cell(
    variant: str,
    scores: float | Mapping[str, Any],
    sparsity: float | None = None,
    seed: int = 1,
    *,
    under: Mapping[str, float] | None = None,
    recipe: Mapping[str, Any] | None = None,
    emptied: Sequence[str] = (),
    **changes: Any,
) -> CellResult:
    """One cell.

    Args:
        variant: Its variant.
        scores: The score on `validation`, or by data set a value, a `Score`, or scores by metric.
        sparsity: Of its mask; None for a dense model.
        seed: Its seed.
        under: Accuracy under attack, by attack.
        recipe: What its recipe has besides the defaults.
        emptied: Matrices of which the mask leaves nothing.
        **changes: Fields of the cell, or else axes of the grid, which its recipe has too.
    """
    fields = {name: changes.pop(name) for name in list(changes) if name in CellResult.model_fields}
    axes = changes | ({} if sparsity is None else {"draw.sparsity": sparsity}) | {"seed": seed}
    raw: dict[str, Any] = {
        "model": "minilm",
        "task": "reviews",
        "retrain": {},
        **(recipe or {}),
        "seed": seed,
    }
    if sparsity is not None:
        usual = {"search": {"method": "magnitude"}, "draw": {"sparsity": sparsity}}
        raw |= {section: raw.get(section) or settings for section, settings in usual.items()}
    for axis, value in changes.items():
        section, _, key = axis.rpartition(".")
        if section == "":
            raw |= {key: value} if key in Recipe.model_fields else {}
        else:
            raw[section] = {**raw.get(section, {}), key: value}
    grid = Cell(variant=variant, axes=axes, recipe=checked(Recipe, raw))
    given = scores if isinstance(scores, Mapping) else {"validation": scores}
    attacks = {name: attacked(value) for name, value in (under or {}).items()}
    found = {on: _scores(value) for on, value in given.items()}
    found |= {name: {UNDER_ATTACK: score(one.accuracy_under_attack, one.n)} for name, one in attacks.items()}
    stages = CellStages(
        model=stage_name("train", grid.label),
        evaluations={
            on: stage_name("evaluate", grid.label, on.removeprefix(f"{grid.recipe.task}/")) for on in given
        },
        attacks={name: stage_name("attack", grid.label, name) for name in attacks},
    )
    return CellResult(
        **{
            "variant": variant,
            "axes": axes,
            "seed": seed,
            "label": grid.label,
            "precision": "fp32",
            "recipe": grid.raw(),
            "scores": found,
            "attacks": attacks,
            "mask": None if sparsity is None else drawn(sparsity, emptied),
            "stages": stages,
            "seconds": 1.0,
            **fields,
        }
    )


def result(*cells: CellResult, folder: Path = Path("runs/r"), name: str = "r", **fields: Any) -> Result:
    """A result of these cells."""
    record = RunRecord(
        **{"name": name, "recipe": {"name": name}, "versions": {"tombola": "0"}, **fields},
        stages=StageCounts(all=len(cells), run_now=len(cells)),
        cells=list(cells),
    )
    return Result(record, folder)


def _scores(given: Any) -> dict[str, Score]:
    if isinstance(given, Mapping):
        return {metric: one if isinstance(one, Score) else score(one) for metric, one in given.items()}
    return {"accuracy": given if isinstance(given, Score) else score(given)}
