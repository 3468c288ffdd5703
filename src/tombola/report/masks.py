"""A page of heat maps: where each mask is sparse, and how far masks agree."""

from pathlib import Path

from tombola.analysis import Comparison
from tombola.masks import Mask
from tombola.report.heatmap import heatmap
from tombola.report.page import render


def write_masks(compared: Comparison, path: Path) -> Path:
    """Write the page."""
    names = list(compared.masks)
    numbers = [str(index + 1) for index in range(len(names))]
    rows = [f"{number} {name}" for number, name in zip(numbers, names, strict=True)]
    return render(
        "masks.html",
        path,
        overlap=heatmap(rows, numbers, compared.overlaps(), digits=1) if len(names) > 1 else None,
        masks=[(name, _caption(mask), _map(mask)) for name, mask in compared.masks.items()],
    )


def _caption(mask: Mask) -> str:
    return (
        f"{mask.removed:,} of {mask.count:,} units ({mask.units.granularity}) removed, {mask.weight_sparsity:.2%} of "
        f"the prunable weights; below, the share removed in each layer and kind of matrix, in percent"
    )


def _map(mask: Mask) -> str:
    cells = mask.table()
    kinds = list(dict.fromkeys(kind for _, kind in cells))
    layers = list(dict.fromkeys(layer for layer, _ in cells))
    rows = ["–" if layer is None else str(layer) for layer in layers]
    return heatmap(
        rows, kinds, [[cells.get((layer, kind)) for kind in kinds] for layer in layers], corner="layer"
    )
