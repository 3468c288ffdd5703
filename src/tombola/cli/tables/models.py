"""Tables about one model: scores, attacks, size, masks, exports, and lists of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import commonpath
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tombola.cli.tables.layout import Column, Grid
from tombola.results.formatting import LARGE, write_speedup, write_value

if TYPE_CHECKING:
    from tombola.attacks import AttackReport
    from tombola.evaluation.scores import Score
    from tombola.masks import Mask
    from tombola.shrink import Export, Row
    from tombola.shrink.onnx import Int8
    from tombola.tickets.comparison import Comparison


FEW_WORDS = (1, 2, 3, 5)
"""The limits of changed words for which the table of an attack shows accuracies."""


def score_table(name: str, scores: dict[str, dict[str, Score]]) -> Grid:
    """Return a table of a model's scores with their standard errors."""
    rows = [(on, metric, score) for on, by_metric in scores.items() for metric, score in by_metric.items()]
    return Grid(
        name,
        [
            Column("on", [on for on, _, _ in rows], "left"),
            Column("metric", [metric for _, metric, _ in rows], "left"),
        ],
        [
            Column("score", [_four_digits(score.value) for _, _, score in rows]),
            Column("± s.e.", [_four_digits(score.stderr) for _, _, score in rows]),
            Column("n", [f"{score.n:,}" for _, _, score in rows]),
        ],
    )


def _four_digits(value: float) -> str:
    """Format a score with four decimals, or four digits if it is large, as the perplexity of a destroyed model is."""
    return f"{value:.4f}" if abs(value) < LARGE else f"{value:.4g}"


def attack_table(name: str, report: AttackReport) -> Grid:
    """Return a table of an attack's figures."""
    summary = report.summary()
    low, high = summary["accuracy_under_attack_interval"]
    rows = {
        "examples": f"{summary['n']}",
        "clean accuracy": _percent(summary["clean_accuracy"]),
        "accuracy under attack": (
            f"{_percent(summary['accuracy_under_attack'])} (95 %: {_percent(low)} to {_percent(high)})"
        ),
        **_by_words(report),
        "success rate": _percent(summary["success_rate"]),
        "queries": _number(summary["mean_queries"]),
        "changed words": f"{_number(summary['mean_changed_words'])} ({_percent(summary['mean_changed_share'])})",
        "similarity": _number(summary["mean_similarity"], 3),
    }
    caption = [
        f"{summary['seconds']:.0f} s, {summary['rows']:,} texts scored",
        *(f"{kind}: {what}" for kind, what in report.resources.items()),
    ]
    return Grid(
        f"{report.attack} on {name}",
        [Column("", list(rows), "left")],
        [Column("", list(rows.values()), "left")],
        caption,
    )


def _by_words(report: AttackReport) -> dict[str, str]:
    """Return a row with the accuracy left if the attack may change only a few words."""
    curve = [point for point in report.by_changed_words() if point.words in FEW_WORDS]
    limits = " / ".join(str(point.words) for point in curve)
    return {
        f"if {limits} words may change": " / ".join(f"{100 * point.accuracy:.1f}" for point in curve) + " %"
    }


def attacks_table(name: str, reports: Mapping[str, AttackReport]) -> Grid:
    """Return a table of an attack's figures on several tasks of one model."""
    summaries = [report.summary() for report in reports.values()]
    return Grid(
        f"{next(iter(reports.values())).attack} on {name}",
        [Column("task", list(reports), "left")],
        [
            Column("examples", [str(summary["n"]) for summary in summaries]),
            Column("clean\naccuracy", [_percent(summary["clean_accuracy"]) for summary in summaries]),
            Column(
                "accuracy\nunder attack",
                [_percent(summary["accuracy_under_attack"]) for summary in summaries],
            ),
            Column("success\nrate", [_percent(summary["success_rate"]) for summary in summaries]),
            Column("queries", [_number(summary["mean_queries"]) for summary in summaries]),
            Column("changed\nwords", [_number(summary["mean_changed_words"]) for summary in summaries]),
        ],
    )


def size_table(title: str, rows: Sequence[Row]) -> Grid:
    """Return a table of values before and after, with their ratios; those of times have a 95 % interval."""
    return Grid(
        title,
        [Column("", [row.what for row in rows], "left")],
        [
            Column("before", [scaled(row.before, row.unit) for row in rows]),
            Column("after", [scaled(row.after, row.unit) for row in rows]),
            Column("ratio", [_ratio(row) for row in rows], "left"),
        ],
        [f"{row.what}: {row.speedup.busy}" for row in rows if row.speedup and row.speedup.busy],
    )


def _ratio(row: Row) -> str:
    if row.speedup is None:
        return f"{row.ratio:.2f} ×"
    return f"{row.ratio:.2f} × ({row.speedup.low:.2f}–{row.speedup.high:.2f})"


def scaled(value: float, unit: str = "") -> str:
    """Format a value with three digits and a prefix: 22.7 M, 90.9 MB, 63.5 ms."""
    sizes = {"G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3}
    prefix, size = next(((name, size) for name, size in sizes.items() if abs(value) >= size), ("µ", 1e-6))
    digits = 0 if abs(value) >= 100 * size else 1 if abs(value) >= 10 * size else 2
    return f"{value / size:.{digits}f} {prefix}{unit}".rstrip()


def export_table(done: Export) -> Grid:
    """Return a table of the difference between onnxruntime and PyTorch, and of the speed-up."""
    models: dict[str, Export | Int8] = {"float32": done}
    if done.int8:
        models["int8"] = done.int8
    values = [
        Column("bytes", [f"{model.bytes:,}" for model in models.values()]),
        Column("largest\ndifference", [f"{model.max_difference:.2g}" for model in models.values()]),
    ]
    if done.int8:
        values.append(Column("same\ndecision", ["", _percent(done.int8.agreement)]))
    if done.metric:
        values.append(Column(done.metric, [_score(model.score, done.metric) for model in models.values()]))
    values += [
        Column(
            f"speed-up,\nbatch {batch}", [write_speedup(model.speedup[batch]) for model in models.values()]
        )
        for batch in done.speedup
    ]
    caption = [
        f"on {done.texts}",
        *(["speed-up: × as fast as PyTorch, 95 % interval"] if done.speedup else []),
        *(
            f"{name}, batch {batch}: {speedup.busy}"
            for name, model in models.items()
            for batch, speedup in model.speedup.items()
            if speedup.busy
        ),
    ]
    return Grid("ONNX", [Column("", list(models), "left")], values, caption)


def overlap_table(compared: Comparison) -> Grid:
    """Return a table of the pairwise Jaccard overlaps of the masks' kept weights."""
    names = _without_common_folder(list(compared.masks))
    overlaps = compared.overlaps()
    return Grid(
        "overlap of kept weights (Jaccard)",
        [Column("", [f"{index + 1} {name}" for index, name in enumerate(names)], "left")],
        [Column(str(index + 1), [_shaded(row[index]) for row in overlaps]) for index in range(len(overlaps))],
    )


def mask_table(name: str, mask: Mask) -> Grid:
    """Return a shaded table of the sparsity by layer and kind of matrix."""
    cells = mask.table()
    layers = list(dict.fromkeys(layer for layer, _ in cells))
    caption = [
        f"{mask.removed:,} of {mask.count:,} units ({mask.units.granularity}) removed",
        f"{100 * mask.weight_sparsity:.2f} % of the prunable weights; base {mask.base.fingerprint}",
    ]
    return Grid(
        name,
        [Column("layer", ["–" if layer is None else str(layer) for layer in layers])],
        [
            Column(kind, [_shaded(cells.get((layer, kind))) for layer in layers])
            for kind in dict.fromkeys(kind for _, kind in cells)
        ],
        caption,
    )


def catalogue_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Return a table of names with one line each."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, about in rows:
        table.add_row(Text(name), Text(about))
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _score(value: float | None, metric: str) -> str:
    return "–" if value is None else write_value(value, metric)


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _shaded(share: float | None) -> str | Text:
    return "" if share is None else Text(f"{100 * share:.0f} %", style=f"on color({255 - round(share * 20)})")


def _without_common_folder(names: list[str]) -> list[str]:
    """Return the paths relative to their common folder."""
    if len(names) < 2 or len({PurePath(name).is_absolute() for name in names}) > 1:
        return names
    common = commonpath(names)
    return [str(PurePath(name).relative_to(common)) for name in names] if common else names
