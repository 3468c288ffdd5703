"""Fills the page's template. Everything that comes from data is escaped."""

from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, select_autoescape

from tombola.report.chart import Curve, Point, chart
from tombola.report.heatmap import heatmap
from tombola.results import Result, Summary


def write_report(result: Result, path: Path | None = None) -> Path:
    """Write the page beside the result, or to `path`."""
    path = path or result.folder / "report.html"
    rows = result.summaries()
    return render(
        "page.html",
        path,
        name=result.content["name"],
        about=result.content["about"],
        rows=[_row(result, row) for row in rows],
        targets=[(on, result.headline(on)) for on in result.targets],
        axes=_axes(rows),
        seeds=max(row.seeds for row in rows),
        charts=[(on, result.headline(on), svg) for on in result.targets if (svg := _chart(rows, on))],
        recipe=yaml.safe_dump(result.content["recipe"], sort_keys=False, allow_unicode=True),
        versions=result.content["versions"],
        precision=sorted({cell["precision"] for cell in result.cells}),
        matching=result.matching(result.targets[0]),
        transfer=_transfer(result.content.get("transfer")),
    )


def render(template: str, path: Path, **content: Any) -> Path:
    """Fill a template and write the page."""
    environment = Environment(loader=PackageLoader("tombola.report", "."), autoescape=select_autoescape())
    page = environment.get_template(template).render(**content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _transfer(found: dict[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    matrix = heatmap(
        found["sources"], found["targets"], found["difference"], corner="mask of", signed=True, digits=1
    )
    return {"on": found["on"], "map": matrix}


def _axes(rows: list[Summary]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.axes if name != "draw.sparsity"))


def _row(result: Result, row: Summary) -> dict[str, Any]:
    scores = [row.scores.get(on) for on in result.targets]
    best = {
        on: max(r.scores[on]["mean"] for r in result.summaries() if on in r.scores) for on in result.targets
    }
    return {
        "variant": row.variant,
        "axes": [row.axes.get(axis, "") for axis in _axes(result.summaries())],
        "sparsity": row.sparsity,
        "scores": [
            s and {**s, "best": s["mean"] == best[on]} for on, s in zip(result.targets, scores, strict=True)
        ],
    }


def _chart(rows: list[Summary], on: str) -> str | None:
    curves: dict[str, list[Point]] = {}
    for row in rows:
        if on in row.scores:
            score = row.scores[on]
            curves.setdefault(row.variant, []).append(
                Point(row.sparsity, score["mean"], score["low"], score["high"])
            )
    if len({point.x for points in curves.values() for point in points}) < 2:
        return None
    return chart([Curve(name, sorted(points)) for name, points in curves.items()])
