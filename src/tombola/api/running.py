"""Run recipes, or only plan them: `run`, `study`, `share` and `transfer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tombola.foundations.sequences import as_tuple
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan, plan_cells
from tombola.pipeline.runner import run_plan
from tombola.pipeline.sharing import plan_share as plan_sharing
from tombola.pipeline.study import StudySettings, plan_study, read_study
from tombola.pipeline.watching import Watcher
from tombola.recipe.builtin import find_recipe
from tombola.recipe.claims import read_claims
from tombola.recipe.grid import expand
from tombola.recipe.reading import Raw, load_recipe
from tombola.results.collecting import collect
from tombola.results.result import RESULTS, Result
from tombola.results.run_folder import claimed
from tombola.results.transfer import transfer_grid
from tombola.store.roots import register_root
from tombola.store.store import Store

Source = Path | str | Mapping[str, Any]
AnyStore = Store | Path | str | None


def run(
    recipe: Source | Plan,
    overrides: str | Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = True,
    watcher: Watcher | None = None,
    replace: bool = False,
    **settings: Any,
) -> Result:
    """Run a recipe: every cell of its grid, with each shared stage only once, and no stage that is already finished.

    Args:
        recipe: A recipe file, the name of a built-in recipe, a mapping, or a plan.
        overrides: Changes, one or several, such as `"draw.sparsity=0.5"`. A list makes a grid: `"seed=[1,2,3]"`.
        output: The folder for `results.json` and the tickets; by default `runs/NAME`, or `runs/NAME-2` and so on if
            that holds the result of another recipe.
        store: The folder or URL of the store of finished stages; by default `TOMBOLA_STORE` or
            `~/.cache/tombola/store`.
        engine: The engine that runs the stages; by default this process.
        tickets: Whether to write a ticket for every cell with a mask, and the model of every dense cell.
        watcher: Receives progress events.
        replace: Replace the result of another recipe in the output folder; by default this raises an error.
        **settings: Changes by keyword, with `__` for dots: `draw__sparsity=0.5`.
    """
    plan = recipe if isinstance(recipe, Plan) else plan_run(recipe, overrides, **settings)
    return _carry_out(plan, output, store, engine, watcher, replace=replace, tickets=tickets)


def plan_run(recipe: Source, overrides: str | Iterable[str] = (), **settings: Any) -> Plan:
    """Return the cells and stages that `run` would run for a recipe, without running them.

    Args:
        recipe: A recipe file, the name of a built-in recipe, or a mapping.
        overrides: Changes, one or several, such as `"draw.sparsity=0.5"`. A list makes a grid: `"seed=[1,2,3]"`.
        **settings: Changes by keyword, with `__` for dots: `draw__sparsity=0.5`.
    """
    return plan_recipe(load_recipe(find_recipe(recipe), overrides, **settings))


def plan_recipe(raw: Raw) -> Plan:
    """Return the plan of a loaded recipe.

    Args:
        raw: The recipe as a mapping, overrides included.
    """
    cells = expand(raw)
    first = cells[0].recipe
    return plan_cells(first.name, first.about, raw, cells, read_claims(raw))


def study(
    source: Source | StudySettings | Plan,
    overrides: str | Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = False,
    watcher: Watcher | None = None,
    replace: bool = False,
    **settings: Any,
) -> Result:
    """Run a grid of recipes. A failure does not stop the rest; `Result.failures` lists what is missing.

    Args:
        source: A study or recipe file, the name of a built-in one, a mapping, or a plan.
        overrides: Changes to every recipe, or to the study's name, engine or claims; one or several, such as
            `"seed=[1,2,3]"`.
        output: The folder for `results.json`; by default `runs/NAME`, or `runs/NAME-2` and so on if that holds the
            result of another recipe.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default the study's engine, or this process.
        tickets: Whether to write a ticket for every cell with a mask, and the model of every dense cell.
        watcher: Receives progress events.
        replace: Replace the result of another recipe in the output folder; by default this raises an error.
        **settings: Changes by keyword, with `__` for dots.
    """
    if isinstance(source, Plan):
        plan = source
    else:
        read = source if isinstance(source, StudySettings) else read_study(source, overrides, **settings)
        plan, engine = plan_study(read), engine or read.engine
    return _carry_out(plan, output, store, engine, watcher, replace=replace, tickets=tickets, keep_going=True)


def share(
    recipe: Source | Plan,
    overrides: str | Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
    replace: bool = False,
    **settings: Any,
) -> Result:
    """Draw a ticket for every task, train all tasks on one encoder with and without the tickets, and compare.

    Args:
        recipe: A recipe with `tasks`: a file, the name of a built-in recipe, a mapping, or a plan.
        overrides: Changes, one or several, such as `"seed=[1,2,3]"`.
        output: The folder for `results.json` and a multi-task ticket per seed; by default `runs/NAME`, or
            `runs/NAME-2` and so on if that holds the result of another recipe.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
        replace: Replace the result of another recipe in the output folder; by default this raises an error.
        **settings: Changes by keyword, with `__` for dots.
    """
    plan = recipe if isinstance(recipe, Plan) else plan_share(recipe, overrides, **settings)
    return _carry_out(plan, output, store, engine, watcher, replace=replace, tickets=True)


def plan_share(recipe: Source, overrides: str | Iterable[str] = (), **settings: Any) -> Plan:
    """Return the cells and stages that `share` would run for a recipe, without running them.

    Args:
        recipe: A recipe with `tasks`: a file, the name of a built-in recipe, or a mapping.
        overrides: Changes, one or several, such as `"draw.sparsity=0.5"`. A list makes a grid: `"seed=[1,2,3]"`.
        **settings: Changes by keyword, with `__` for dots: `draw__sparsity=0.5`.
    """
    return plan_sharing(load_recipe(find_recipe(recipe), overrides, **settings))


def transfer(
    recipe: Source | Plan,
    overrides: str | Iterable[str] = (),
    *,
    sources: str | Sequence[str] = (),
    targets: str | Sequence[str] = (),
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = True,
    watcher: Watcher | None = None,
    replace: bool = False,
) -> Result:
    """Search a mask on every source task, train every target under each mask, and compare with dense training.

    Args:
        recipe: A recipe with a search: a file, the name of a built-in recipe, a mapping, or a plan.
        overrides: Changes, one or several, such as `"draw.sparsity=0.7"`.
        sources: Tasks to search masks on; by default the recipe's `search.task`, or the targets.
        targets: Tasks to train on; by default the recipe's `task`.
        output: The folder for `results.json` and the tickets; by default `runs/NAME`, or `runs/NAME-2` and so on if
            that holds the result of another recipe.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default this process.
        tickets: Whether to write tickets and dense models.
        watcher: Receives progress events.
        replace: Replace the result of another recipe in the output folder; by default this raises an error.

    Returns:
        The result; its `transfer()` returns the matrix of differences.
    """
    plan = recipe if isinstance(recipe, Plan) else plan_transfer(recipe, overrides, sources, targets)
    return _carry_out(plan, output, store, engine, watcher, replace=replace, tickets=tickets)


def plan_transfer(
    recipe: Source,
    overrides: str | Iterable[str] = (),
    sources: str | Sequence[str] = (),
    targets: str | Sequence[str] = (),
) -> Plan:
    """Return the cells and stages that `transfer` would run for a recipe, without running them.

    Args:
        recipe: A recipe with a search: a file, the name of a built-in recipe, or a mapping.
        overrides: Changes, one or several, such as `"draw.sparsity=0.5"`. A list makes a grid: `"seed=[1,2,3]"`.
        sources: Tasks to search masks on; by default the recipe's `search.task`, or the targets.
        targets: Tasks to train on; by default the recipe's `task`.
    """
    raw = load_recipe(find_recipe(recipe), overrides)
    return plan_recipe(transfer_grid(raw, list(as_tuple(sources)), list(as_tuple(targets))))


def _carry_out(
    plan: Plan,
    output: Path | str | None,
    store: AnyStore,
    engine: Local | Ray | None,
    watcher: Watcher | None,
    *,
    replace: bool,
    tickets: bool,
    keep_going: bool = False,
) -> Result:
    """Run a plan, then collect and save its result."""
    store = Store.of(store)
    with claimed(plan, Path(output) if output is not None else None, replace=replace) as folder:
        file = folder.path / RESULTS
        outcome = run_plan(plan, store, file, engine=engine, watcher=watcher, keep_going=keep_going)
        with folder.writing() if is_main() else nullcontext():
            result = Result(collect(plan, outcome, store, folder, tickets=tickets), folder.path)
            if is_main():
                result.save()
                folder.clear(result.record)
                register_root(store, file, plan.stages, finished=True)
    return result
