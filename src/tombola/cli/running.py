"""What the verbs that run recipes have in common: their arguments, and the way from the plan to the tables."""

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
    """The options of every verb that runs stages: where results go, who runs them, and what is shown."""

    output: Output = None
    store: Store = None
    dry_run: DryRun = False
    engine: EngineName = None
    workers: Workers = None
    address: Address = None
    report: Report = True

    def chosen_engine(self, base: Local | Ray | None = None) -> Local | Ray | None:
        """The engine that the options ask for, laid over the one of a study; None where nothing is asked."""
        given = {"workers": self.workers, "address": self.address}
        asked = {key: value for key, value in given.items() if value is not None}
        if self.engine is None and not asked:
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
        raw = {"recipes": [{}], "engine": {**kept, "kind": kind, **asked}}
        return checked(StudySettings, raw).engine


@dataclass(frozen=True, kw_only=True)
class RunOptions(EngineOptions):
    """The arguments of the verbs that run a recipe."""

    recipe: Recipe
    overrides: Overrides = None
    replace: Replace = False

    @property
    def changes(self) -> list[str]:
        """The overrides; none are an empty list."""
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
    """Plan, run, write the report and show the result; of a dry run, only the plan.

    Args:
        screen: Where to show it.
        options: What was typed.
        plan: Makes the plan.
        run: Gives the function of `tombola.api` that carries the plan out. Looking it up imports torch, so that
            happens only when the user has seen that something is going on.
        show: Prints the tables of the result.
        base: The engine that the study asks for.
        **settings: Further arguments of `run`.
    """
    engine = options.chosen_engine(base)
    with screen.watch("planning") as watcher:
        with no_garbage_collection():  # what is imported and planned stays
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
