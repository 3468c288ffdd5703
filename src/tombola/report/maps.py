"""Heat maps: transfer, overlap and sparsity of masks, and tensors frozen by selective training."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from statistics import fmean
from typing import Any

from tombola.errors import MaskMismatch
from tombola.masks import MASK, Mask
from tombola.report.parts import Facets, Heatmap, Section
from tombola.report.rows import facets, model
from tombola.results.formatting import is_share
from tombola.results.result import Result

MANY = 16
"""The most masks to show; `tombola inspect` shows all."""


def transfer(result: Result) -> Section | None:
    """Return the map of scores under the masks of other tasks, minus the dense scores."""
    differences = result.transfer()
    if differences is None:
        return None
    share = is_share(differences.metric)
    heatmap = Heatmap(
        "transfer",
        differences.sources,
        differences.targets,
        differences.difference,
        "mask of",
        signed=True,
        digits=1 if share else 3,
        scale=100 if share else 1,
    )
    metric = differences.metric or "the target’s metric"
    note = (
        f"Difference from the dense model, in {'points of ' if share else ''}{metric}, on {differences.on}. "
        "Rows: the tasks of the masks. Columns: the tasks trained under them."
    )
    return Section("Transfer", note, [heatmap])


def masks(result: Result) -> list[Section]:
    """Return maps of the sparsity and the overlap of a result's tickets."""
    opened: dict[str, Mask] = {}
    filters: dict[str, Facets] = {}
    paths = {
        model(row): (path, facets(row))
        for row in result.summaries()
        if (ticket := row.cells[0].ticket) and (path := result.folder / ticket / MASK).is_file()
    }
    for name, (path, where) in list(paths.items())[:MANY]:
        opened[name], filters[name] = Mask.load(path), where
    return mask_sections(opened, filters, left_out=len(paths) - len(opened))


def mask_sections(
    opened: Mapping[str, Mask], filters: Mapping[str, Facets], left_out: int = 0
) -> list[Section]:
    """Return the maps of masks by name, and the number of masks that are left out."""
    if not opened:
        return []
    sections = []
    if len(opened) > 1:
        numbers = [str(index) for index in range(1, len(opened) + 1)]
        rows = [f"{number} {name}" for number, name in zip(numbers, opened, strict=True)]
        overlaps = [[_overlap(mask, other) for other in opened.values()] for mask in opened.values()]
        note = "Jaccard overlap in percent: of the weights that either mask keeps, the share that both keep."
        if any(value is None for row in overlaps for value in row):
            note += " Masks of different models cannot be compared."
        sections.append(
            Section("Overlap", note, [Heatmap("overlap", rows, numbers, overlaps, "mask", digits=1)])
        )
    note = "The share of weights removed in each layer and kind of matrix, in percent."
    maps = [_sparsities(name, mask, filters.get(name, {})) for name, mask in opened.items()]
    remarks = [f"{left_out} more masks are not shown: see `tombola inspect`."] if left_out else []
    return [*sections, Section("Sparsity by layer", note, maps, remarks)]


def _overlap(mask: Mask, other: Mask) -> float | None:
    """Return the overlap of two masks; None if they are of different models."""
    try:
        return mask.overlap(other)
    except MaskMismatch:
        return None


def _sparsities(name: str, mask: Mask, where: Facets) -> Heatmap:
    cells = mask.table()
    note = (
        f"{mask.removed:,} of {mask.count:,} units ({mask.units.granularity}) removed, {mask.weight_sparsity:.2%} of "
        "the prunable weights"
    )
    return _by_layer(
        name, {(_layer(layer), kind): share for (layer, kind), share in cells.items()}, note, where
    )


def freezing(result: Result) -> Section | None:
    """Return maps of how often selective training froze each tensor. (ROSE)"""
    maps = []
    for row in result.summaries():
        frozen = [cell.frozen for cell in row.cells if cell.frozen]
        if not frozen:
            continue
        tensors = {name: name.split("/", 1) for name in frozen[0].tensors}
        short = _endings({kind for _, kind in tensors.values()})
        shares = {
            (layer, short[kind]): fmean(run.tensors[name] for run in frozen)
            for name, (layer, kind) in tensors.items()
        }
        note = f"{frozen[0].steps:,} steps"
        maps.append(_by_layer(model(row), shares, note, facets(row)))
    note = "The share of steps, in percent, in which selective training froze a tensor, by layer and kind of tensor."
    return Section("Frozen tensors", note, maps) if maps else None


def _by_layer(name: str, shares: Mapping[Any, float], note: str, where: Facets) -> Heatmap:
    kinds = list(dict.fromkeys(kind for _, kind in shares))
    layers = list(dict.fromkeys(layer for layer, _ in shares))
    values = [[shares.get((layer, kind)) for kind in kinds] for layer in layers]
    return Heatmap(name, layers, kinds, values, "layer", note=note, facets=where)


def _endings(names: Collection[str]) -> dict[str, str]:
    """Return the shortest unique ending of each dotted name, since full names do not fit on the page."""
    shortest = {}
    for name in names:
        parts = name.split(".")
        endings = (".".join(parts[start:]) for start in reversed(range(1, len(parts))))
        unique = (end for end in endings if sum(f".{other}".endswith(f".{end}") for other in names) == 1)
        shortest[name] = next(unique, name)
    return shortest


def _layer(layer: int | None) -> str:
    return "–" if layer is None else str(layer)
