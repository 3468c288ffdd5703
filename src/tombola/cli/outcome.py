"""Print the outcome of a run (tables, decisions, paths, failures), or the plan of a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tombola.cli.console import Screen
from tombola.cli.forecast import roughly

if TYPE_CHECKING:
    from tombola.pipeline.plan import Plan
    from tombola.results.compression import Compression
    from tombola.results.result import Result


def write_page(result: Result, store: str | None) -> Path | None:
    """Write the report next to the result, unless the result is empty."""
    from tombola import api
    from tombola.pipeline.engines.ranks import is_main

    if not result.cells or not is_main():
        return None
    return api.report(result.folder, result.folder / "report.html", store=store)


def show_tables(screen: Screen, result: Result) -> None:
    """Print the tables of a run or study, and the conclusions from them."""
    from tombola.cli import tables

    if result.cells:
        screen.print(tables.result_table(result))
        for phases in result.phases():
            screen.print(tables.phase_table(result, phases))
        for line in (*tables.matching_lines(result), *tables.claim_lines(result)):
            screen.print(tables.Sentence(line))


def show_notes(screen: Screen, notes: Sequence[str]) -> None:
    """Print what was inferred or decided for the user, a line each."""
    from tombola.cli import tables

    for note in notes:
        screen.print(tables.Sentence(note))


def show_compression(screen: Screen, found: Compression, page: Path | None = None) -> None:
    """Print the table of original and ticket, the verdict, and the paths."""
    from tombola.cli import tables

    screen.print(tables.compression_table(found))
    screen.print("")
    screen.print(tables.Sentence(found.verdict))
    screen.wrote("model", found.model)
    if page:
        screen.wrote("report", page)
    screen.finish(verdict=found.verdict, scores=_headlines(found.result), failures=[])


def close(screen: Screen, result: Result, page: Path | None = None) -> None:
    """Print the paths of the results, and the failures; exit with code 1 if there are any."""
    from tombola.results.result import RESULTS

    screen.wrote("results", result.folder / RESULTS)
    if any(cell.ticket for cell in result.cells):
        screen.wrote("tickets", result.folder / "tickets")
    if any(cell.model for cell in result.cells):
        screen.wrote("models", result.folder / "models")
    if page:
        screen.wrote("report", page)
    for failure in result.failures:
        count = len(failure.cells)
        missing = f"{count} {'cell is' if count == 1 else 'cells are'} missing because of it"
        screen.complain(
            f"failed {failure.label}: {failure.reason.rstrip('.')}; {missing}; its log: {failure.log}"
        )
    screen.finish(
        scores=_headlines(result),
        claims=[one.model_dump(mode="json") for one in result.claims()],
        failures=[one.model_dump(mode="json") for one in result.failures],
    )
    if result.failures:
        raise typer.Exit(1)


def _headlines(result: Result) -> list[dict[str, Any]]:
    """Return the sparsity of each row of the table, and its headline score on each data set."""
    return [
        {
            "variant": row.variant,
            "axes": row.axes,
            "seeds": row.seeds,
            "sparsity": row.sparsity,
            "scores": {
                on: {"metric": row.metrics[on], "mean": score.mean} for on, score in row.scores.items()
            },
        }
        for row in result.summaries()
    ]


def show_plan(screen: Screen, plan: Plan, store: str | None) -> None:
    """Print the stages of a plan, how many are finished, and the training steps and time of the rest."""
    from tombola.cli import tables
    from tombola.foundations.caching import run_cache
    from tombola.pipeline.costs import estimate, total_seconds
    from tombola.store.store import Store

    with screen.watch("measuring how long a training step takes"), run_cache():
        costs = estimate(plan, Store(store))
    screen.print(tables.plan_table(plan, costs))
    steps, asked = sum(cost.steps for cost in costs), sum(cost.asked_steps for cost in costs)
    share = f", {steps / asked:.0%} of what separate scripts would take" if asked else ""
    unknown = [cost.kind for cost in costs if cost.seconds is None]
    besides = f", besides {', '.join(unknown)}, whose time is unknown" if unknown else ""
    attacks = any(cost.without_attacks for cost in costs)
    without = ", not counting attacks during training" if attacks else ""
    seconds = total_seconds(costs)
    screen.print(f"{steps:,} training steps{share}; about {roughly(seconds)} on one worker{without}{besides}")
    screen.finish(
        plan={
            "name": plan.name,
            "cells": len(plan.cells),
            "stages": sum(cost.stages for cost in costs),
            "finished": sum(cost.finished for cost in costs),
            "training_steps": steps,
            "seconds": seconds,
            "seconds_unknown_for": unknown,
            "without_attacks": attacks,
        }
    )
