"""What the commands that run recipes share: their options, and the way from the plan to the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tombola.cli.console import Screen
from tombola.cli.options import (
    Address,
    DryRun,
    EngineName,
    Output,
    Overrides,
    Recipe,
    Replace,
    Report,
    Store,
    Workers,
)
from tombola.cli.outcome import close, show_plan, write_page
from tombola.errors import TombolaError
from tombola.foundations.garbage import no_garbage_collection

if TYPE_CHECKING:
    from tombola.pipeline.engines import Local, Ray
    from tombola.pipeline.plan import Plan
    from tombola.results.result import Result


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The options of every command that runs stages: the output, the engine, and what to show."""

    output: Output = None
    store: Store = None
    dry_run: DryRun = False
    engine: EngineName = None
    workers: Workers = None
    address: Address = None
    report: Report = True

    def chosen_engine(self, base: Local | Ray | None = None) -> Local | Ray | None:
        """Return the engine of the options, based on that of the study; the latter if no option sets one."""
        options = {"workers": self.workers, "address": self.address}
        chosen = {key: value for key, value in options.items() if value is not None}
        if self.engine is None and not chosen:
            return base
        from tombola.foundations.settings import checked
        from tombola.pipeline.engines import Local
        from tombola.pipeline.engines.ranks import ranks
        from tombola.pipeline.study import StudySettings

        if ranks() > 1:
            raise TombolaError(
                "under `accelerate launch` all processes train together: leave out --engine and --workers"
            )
        base = base or Local()
        kind = self.engine or ("ray" if self.address else base.kind)
        kept = base.model_dump(exclude_defaults=True) if kind == base.kind else {}
        raw = {"recipes": [{}], "engine": {**kept, "kind": kind, **chosen}}
        return checked(StudySettings, raw).engine


@dataclass(frozen=True, kw_only=True)
class RunOptions(EngineOptions):
    """The options of the commands that run a recipe."""

    recipe: Recipe
    overrides: Overrides = None
    replace: Replace = False

    @property
    def changes(self) -> list[str]:
        """The overrides as a list, empty if there are none."""
        return self.overrides or []


def carry_out(
    screen: Screen,
    options: RunOptions,
    plan: Callable[[], Plan],
    run: Callable[[], Callable[..., Result]],
    show: Callable[[Screen, Result], None],
    *,
    base: Local | Ray | None = None,
    **settings: Any,
) -> None:
    """Plan, run, write the report and show the result; in a dry run, show only the plan.

    Args:
        screen: Where to show it.
        options: The options of the command.
        plan: Makes the plan.
        run: Returns the function of `tombola.api` that runs the plan. Looking it up imports torch, so this happens
            only after the first sign of progress.
        show: Prints the tables of the result.
        base: The study's engine.
        **settings: Further arguments of the function that `run` returns.
    """
    engine = options.chosen_engine(base)
    with screen.watch("planning") as watcher:
        with no_garbage_collection():  # imports and plans stay in memory anyway
            planned = plan()
        if not options.dry_run:
            result = run()(
                planned,
                output=options.output,
                store=options.store,
                engine=engine,
                watcher=watcher,
                replace=options.replace,
                **settings,
            )
            page = write_page(result, options.store) if options.report else None
    if options.dry_run:
        show_plan(screen, planned, options.store)
        return
    show(screen, result)
    close(screen, result, page)
