"""Tables for the terminal, one for each kind of result."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from rich.table import Table

from tombola.cli.console import out

if TYPE_CHECKING:
    from tombola.attacks import AttackReport
    from tombola.evaluation.scores import Score
    from tombola.masks import Mask
    from tombola.pipeline.transferring import Transfer
    from tombola.results.result import Result
    from tombola.shrink import Export, Row
    from tombola.tickets.comparison import Comparison

MANY = 5
"""Columns of scores beyond which a table no longer fits a terminal of 80 characters."""


def result_table(result: Result) -> Table:
    """Variants and grid points down, data sets across; the other way round where that is wider than a terminal."""
    rows = result.summaries()
    axes = list(dict.fromkeys(name for row in rows for name in row.axes if name != "draw.sparsity"))
    seeds = max(row.seeds for row in rows)
    spread = (
        f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "score ± standard error, one seed"
    )
    names = ["variant", *(axis.rsplit(".", 1)[-1] for axis in axes), "sparsity"]
    places = [
        [
            row.variant,
            *(str(row.axes.get(axis, "")) for axis in axes),
            f"{row.sparsity:.0%}" if row.sparsity else "dense",
        ]
        for row in rows
    ]
    scores = [[_spread(row.scores.get(on)) for on in result.targets] for row in rows]
    sizes, size_names = _sizes(result)
    table = Table(title=result.content["name"], caption=spread, title_justify="left", caption_justify="left")
    if len(result.targets) > MANY > len(rows):
        table.add_column("on")
        table.add_column("metric")
        for place in places:
            table.add_column("\n".join(place), justify="right")
        for index, on in enumerate(result.targets):
            table.add_row(on, result.headline(on), *(row[index] for row in scores))
        for index, name in enumerate(size_names):
            table.add_row(name.replace("\n", " "), "", *(row[index] for row in sizes))
        return table
    for name in names:
        table.add_column(name, justify="right" if name == "sparsity" else "left", no_wrap=name == "variant")
    for on in result.targets:
        table.add_column(f"{on}\n{result.headline(on)}", justify="right", overflow="fold")
    for name in size_names:
        table.add_column(name, justify="right")
    for place, found, size in zip(places, scores, sizes, strict=True):
        table.add_row(*place, *found, *size)
    return table


def _sizes(result: Result) -> tuple[list[list[str]], list[str]]:
    """For each row its megabytes and its milliseconds per batch, mean over seeds, where they were measured."""
    measured = [
        [cell["measured"]["ticket"] for cell in cells if cell.get("measured")] for cells in result.groups()
    ]
    batches = list(dict.fromkeys(batch for found in measured for one in found for batch in one["latency"]))
    if not batches:
        return [[] for _ in measured], []
    rows = [
        [
            f"{fmean(one['bytes'] for one in found) / 1e6:.1f}",
            " / ".join(f"{1000 * fmean(one['latency'][batch] for one in found):.0f}" for batch in batches),
        ]
        if found
        else ["", ""]
        for found in measured
    ]
    return rows, ["MB", f"ms, batch\n{' / '.join(batches)}"]


def _spread(score: dict[str, float] | None) -> str:
    return f"{score['mean']:.1%} ± {score['spread'] * 100:.1f}" if score else ""


def matching_lines(result: Result) -> list[str]:
    """The sparsest ticket of each variant that is as good as the dense model, in a sentence each.

    Where several models are dense, those of which the same can be said share a sentence.
    """
    on = result.targets[0]
    found = result.matching(on)
    several = len({one.dense for one in found}) > 1
    said: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        name = one.variant + "".join(f" ({axis} {value})" for axis, value in one.place.items())
        if one.within is None:
            before, after = "no ticket matches", ""
        else:
            strict = f"up to {one.strict:.0%}" if one.strict is not None else "at none"
            before, after = "matches", f" up to {one.within:.0%}; not below its mean {strict}"
        said.setdefault((name, before, after), []).append(one.dense if several else "the dense model")
    return [
        f"{name}: {before} {' · '.join(dense)} on {on}{after}"
        for (name, before, after), dense in said.items()
    ]


def attack_table(name: str, report: AttackReport) -> Table:
    """The figures of an attack."""
    found = report.summary()
    low, high = found["accuracy_under_attack_interval"]
    caption = f"{found['seconds']:.0f} s, {found['rows']:,} texts scored; " + "; ".join(
        f"{kind}: {what}" for kind, what in report.resources.items()
    )
    table = Table(
        title=f"{report.attack} on {name}", caption=caption, title_justify="left", caption_justify="left"
    )
    table.add_column("")
    table.add_column("", justify="right")
    rows = [
        ("examples", f"{found['n']}"),
        ("clean accuracy", f"{found['clean_accuracy']:.1%}"),
        ("accuracy under attack", f"{found['accuracy_under_attack']:.1%}  (95 %: {low:.1%} to {high:.1%})"),
        ("success rate", _percent(found["success_rate"])),
        ("queries", _number(found["mean_queries"])),
        (
            "changed words",
            f"{_number(found['mean_changed_words'])}  ({_percent(found['mean_changed_share'])})",
        ),
        ("similarity", _number(found["mean_similarity"], 3)),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def size_table(title: str, rows: Sequence[Row]) -> Table:
    """Before and after, with the ratio of each; that of a time with its 95 % interval."""
    table, remarks = Table("", title=title, title_justify="left", caption_justify="left"), []
    for column in ("before", "after", "ratio"):
        table.add_column(column, justify="right")
    for row in rows:
        before, after = (scaled(value, row.unit) for value in (row.before, row.after))
        interval = f" ({row.low:.2f} to {row.high:.2f})" if row.speedup else ""
        table.add_row(row.what, before, after, f"{row.ratio:.2f} ×{interval}")
        if row.speedup and row.speedup.busy:
            remarks.append(f"{row.what}: {row.speedup.busy}")
    table.caption = "\n".join(remarks) or None
    return table


def scaled(value: float, unit: str = "") -> str:
    """Three digits and a prefix: 22.7 M, 90.9 MB, 63.5 ms."""
    sizes = {"G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3}
    prefix, size = next(((name, size) for name, size in sizes.items() if abs(value) >= size), ("µ", 1e-6))
    digits = 0 if abs(value) >= 100 * size else 1 if abs(value) >= 10 * size else 2
    return f"{value / size:.{digits}f} {prefix}{unit}".rstrip()


def export_table(done: Export) -> Table:
    """How far onnxruntime is from PyTorch, and how many times faster."""
    batches = list(done.speedup)
    table = Table("", title="ONNX", caption=f"on {done.texts}", title_justify="left", caption_justify="left")
    for column in ("bytes", "largest difference", "same decision"):
        table.add_column(column, justify="right")
    if done.metric:
        table.add_column(done.metric, justify="right")
    for batch in batches:
        table.add_column(f"speed-up over PyTorch\nbatch of {batch}", justify="right")
    for name, model, agreement in (
        ("float32", done, ""),
        *((("int8", done.int8, _percent(done.int8.agreement)),) if done.int8 else ()),
    ):
        score = [_percent(model.score)] if done.metric else []
        speeds = (model.speedup[batch] for batch in batches)
        table.add_row(
            name,
            f"{model.bytes:,}",
            f"{model.max_difference:.2g}",
            agreement,
            *score,
            *(f"{speed.ratio:.2f} × ({speed.low:.2f} to {speed.high:.2f})" for speed in speeds),
        )
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def transfer_table(matrix: Transfer) -> Table:
    """Score under the source's mask less the dense score, in points; sources down, targets across."""
    caption = f"{matrix.on}, in points above the dense model; last column: as good as the target's own mask"
    table = Table(title="transfer", caption=caption, title_justify="left", caption_justify="left")
    table.add_column("mask of")
    for target in matrix.targets:
        table.add_column(target, justify="right")
    table.add_column("≥ own", justify="right")
    for source, row in zip(matrix.sources, matrix.difference, strict=True):
        own = f"{matrix.at_least_own[source]} of {matrix.compared[source]}"
        table.add_row(source, *(f"{100 * value:+.1f}" for value in row), own)
    return table


def overlap_table(compared: Comparison) -> Table:
    """Jaccard overlap of the kept weights of every two masks."""
    names = list(compared.masks)
    table = Table(title="overlap of kept weights (Jaccard)", title_justify="left")
    table.add_column()
    for index in range(len(names)):
        table.add_column(str(index + 1), justify="right")
    for index, (name, row) in enumerate(zip(names, compared.overlaps(), strict=True)):
        table.add_row(f"{index + 1} {name}", *(_shaded(value) for value in row))
    return table


def score_table(name: str, scores: dict[str, dict[str, Score]]) -> Table:
    """Scores of one model, each with its standard error."""
    table = Table(title=name, title_justify="left")
    for column, justify in (
        ("on", "left"),
        ("metric", "left"),
        ("score", "right"),
        ("± s.e.", "right"),
        ("n", "right"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for on, found in scores.items():
        for metric, score in found.items():
            table.add_row(on, metric, f"{score.value:.4f}", f"{score.stderr:.4f}", str(score.n))
    return table


def mask_table(name: str, mask: Mask) -> Table:
    """Sparsity by layer and kind of matrix, shaded: what the search thought it could spare."""
    cells = mask.table()
    kinds = list(dict.fromkeys(kind for _, kind in cells))
    layers = list(dict.fromkeys(layer for layer, _ in cells))
    caption = (
        f"{mask.removed:,} of {mask.count:,} units ({mask.units.granularity}) removed, "
        f"{mask.weight_sparsity:.2%} of the prunable weights; base {mask.base.fingerprint}"
    )
    table = Table(title=name, caption=caption, title_justify="left", caption_justify="left")
    table.add_column("layer", justify="right")
    for kind in kinds:
        table.add_column(kind, justify="right")
    for layer in layers:
        shares = [cells.get((layer, kind)) for kind in kinds]
        table.add_row(
            "–" if layer is None else str(layer), *("" if s is None else _shaded(s) for s in shares)
        )
    return table


def catalogue_table(title: str, rows: list[tuple[str, str]]) -> Table:
    """Names with one line each."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, about in rows:
        table.add_row(name, about)
    return table


def _shaded(share: float) -> str:
    shade = 255 - round(share * 20)
    return f"[on color({shade})] {share:.0%} [/]" if out.is_terminal else f"{share:.0%}"
