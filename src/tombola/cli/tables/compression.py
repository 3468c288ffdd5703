"""The table of a compression: original and ticket, in transformers and in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tombola.cli.tables.layout import Column, Grid
from tombola.cli.tables.models import scaled
from tombola.cli.tables.results import notes_below
from tombola.results.formatting import RUNTIMES, is_share, write_metric, write_value

if TYPE_CHECKING:
    from tombola.evaluation.scores import Score
    from tombola.results.compression import Compression
    from tombola.results.record import CellResult

UNCERTAIN = "*"


def compression_table(compression: Compression) -> Grid:
    """Return a table with a column for each model and a row for each score, size and speed-up."""
    cells = compression.result.cells
    rows: dict[str, list[str]] = {}
    for on in compression.result.targets:
        metric = compression.result.headline(on)
        label = (
            f"under {on}"
            if compression.result.condition(on) == "under attack"
            else f"{write_metric(metric)} on {on}"
        )
        rows[label] = [_score(cell.scores.get(on), metric) for cell in cells]
    if any(cell.measured for cell in cells):
        rows["parameters"] = [_parameters(cell) for cell in cells]
        rows["size"] = [scaled(_bytes(cell), "B") if cell.measured else "" for cell in cells]
        for size in next(cell.measured.dense.latency for cell in cells if cell.measured):
            rows[f"times faster, batch {size}"] = [_faster(cell, size) for cell in cells]
        if any(cell.measured and cell.measured.onnx_speedup for cell in cells):
            for size in next(cell.measured.dense.latency for cell in cells if cell.measured):
                rows[f"… than in ONNX, batch {size}"] = [_faster(cell, size, onnx=True) for cell in cells]
    first, *others = (
        Column(_name(cell), [row[place] for row in rows.values()]) for place, cell in enumerate(cells)
    )
    timed = next((cell.measured.dense.texts for cell in cells if cell.measured), None)
    caption = ["± is half of the 95 % interval", *([f"timed in turns on {timed}"] if timed else [])]
    if any(value.endswith(UNCERTAIN) for row in rows.values() for value in row):
        caption.append(f"{UNCERTAIN} uncertain: the machine was busy, or time allowed only a few rounds")
    caption += notes_below(compression.result)
    return Grid("", [Column("", list(rows), "left")], [first, *others], caption)


def _name(cell: CellResult) -> str:
    runtime = RUNTIMES[cell.recipe.get("runtime", "transformers")]
    return f"{cell.variant}\n{runtime}" if runtime else cell.variant


def _score(scores: dict[str, Score] | None, metric: str) -> str:
    if not scores:
        return ""
    score = next(iter(scores.values()))
    low, high = score.interval()
    spread = (high - low) / 2
    return (
        f"{write_value(score.value, metric)} ± {100 * spread:.1f}"
        if is_share(metric)
        else f"{write_value(score.value, metric)} ± {write_value(spread, metric)}"
    )


def _parameters(cell: CellResult) -> str:
    return scaled(cell.measured.ticket.parameters) if cell.measured else ""


def _bytes(cell: CellResult) -> float:
    assert cell.measured is not None
    return cell.measured.ticket.bytes


def _faster(cell: CellResult, size: int, onnx: bool = False) -> str:
    if cell.measured is None:
        return ""
    speedup = (cell.measured.onnx_speedup if onnx else cell.measured.speedup).get(size)
    if speedup is None:
        return "" if onnx else "1"
    return f"{speedup.ratio:.2f}" + (UNCERTAIN if speedup.busy else "")
