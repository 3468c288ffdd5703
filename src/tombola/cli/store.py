"""tombola store: ls, du, verify, gc, rm"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Store, app, verb

if TYPE_CHECKING:
    from tombola.store.garbage import Item

store_app = typer.Typer(help="Manage the store of finished stages.", no_args_is_help=True)
app.add_typer(store_app, name="store")


@verb(to=store_app)
def ls(screen: Screen, store: Store = None) -> None:
    """List the stages in the store, and the results that need them.

    [bold]Example:[/bold] tombola store ls
    """
    from rich.table import Table

    from tombola.store.garbage import items
    from tombola.store.roots import roots
    from tombola.store.store import Store as OpenStore

    opened = OpenStore(store)
    alive = [root for root in roots(opened) if root.alive]
    table = Table(title=str(opened.root), title_justify="left")
    table.add_column("stage", no_wrap=True)  # names are complete, to be copied
    table.add_column("what")
    table.add_column("size", justify="right")
    table.add_column("results", justify="right")
    for item in items(opened):
        users = sum(item.stage in root.stages for root in alive)
        table.add_row(item.name, item.label, _size(item.bytes), str(users))
    screen.print(table)
    for root in alive:
        screen.print(f"{len(root.stages)} stages: {root.result}")


@verb(to=store_app)
def du(screen: Screen, store: Store = None) -> None:
    """Show the disk space of each kind of stage, and of each run.

    [bold]Example:[/bold] tombola store du
    """
    from rich.table import Table

    from tombola.store.garbage import items
    from tombola.store.removing import sizes_by_run
    from tombola.store.store import Store as OpenStore

    opened = OpenStore(store)
    kinds: dict[str, list[int]] = {}
    for item in items(opened):
        kinds.setdefault(item.name.split("/")[0] if item.finished else "unfinished", []).append(item.bytes)
    table = Table("kind", title=str(opened.root), title_justify="left")
    table.add_column("stages", justify="right")
    table.add_column("size", justify="right")
    for kind, sizes in sorted(kinds.items(), key=lambda entry: -sum(entry[1])):
        table.add_row(kind, str(len(sizes)), _size(sum(sizes)))
    table.add_row("all", str(sum(map(len, kinds.values()))), _size(sum(map(sum, kinds.values()))))
    screen.print(table)
    runs = Table("run", caption="alone: not needed by any other run", caption_justify="left")
    for heading in ("stages", "size", "alone"):
        runs.add_column(heading, justify="right")
    for run in sizes_by_run(opened):
        name = _short(run.result.parent) if run.result else "no run (tombola store gc)"
        runs.add_row(name, str(run.stages), _size(run.bytes), _size(run.alone))
    screen.print(runs)


@verb(to=store_app)
def verify(screen: Screen, store: Store = None) -> None:
    """Check every finished stage against its checksums; exit with code 1 if one is damaged.

    [bold]Example:[/bold] tombola store verify
    """
    from tombola.store.garbage import damaged
    from tombola.store.roots import damaged_roots
    from tombola.store.store import Store as OpenStore

    opened = OpenStore(store)
    checked = [reason for _, reason in damaged(opened)]
    if opened.remote:
        checked += [reason for _, reason in opened.remote.damaged()]
    wrong = [*filter(None, checked), *damaged_roots(opened)]
    for reason in wrong:
        screen.print(reason)
    for upload in opened.remote.orphans() if opened.remote else ():
        screen.print(
            f"{upload} is left over from an interrupted upload: delete it, unless an upload is running"
        )
    screen.print(f"{len(checked)} stages checked, {len(wrong)} damaged")
    if wrong:
        raise typer.Exit(1)


@verb(to=store_app)
def gc(
    screen: Screen,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without this option, only list.")] = False,
    days: Annotated[float, typer.Option(min=0, help="Keep stages used within this many days.")] = 1.0,
    store: Store = None,
) -> None:
    """Delete stages that no result needs any more. Without --yes, only list them.

    [bold]Example:[/bold] tombola store gc --days 7 --yes
    """
    from tombola.store.garbage import collect_garbage, garbage
    from tombola.store.store import Store as OpenStore

    opened = OpenStore(store)
    collectable = garbage(opened, days)
    for item in collectable:
        screen.print(f"{item.name}  {item.label}  {_size(item.bytes)}")
    gone = collect_garbage(opened, days) if yes else collectable
    what = "deleted" if yes else "would be deleted; add --yes to delete them"
    screen.print(f"{_folders(gone)}: {what}")


@verb(to=store_app)
def rm(
    screen: Screen,
    what: Annotated[list[str], typer.Argument(help="Run folders, or stages by the start of their keys.")],
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without this option, only list.")] = False,
    store: Store = None,
) -> None:
    """Delete a stage, or the stages of a run that no other run needs. Without --yes, only list them.

    Results, tickets and reports in the run's folder stay; attacked sentences in new reports and McNemar's test need
    the stages.

    [bold]Example:[/bold] tombola store rm runs/bert_tickets-quick --yes
    """
    from tombola.store.removing import find_removal
    from tombola.store.store import Store as OpenStore

    opened = OpenStore(store)
    for one in what:
        removal = find_removal(opened, one)
        for item in removal.items:
            screen.print(f"{item.name}  {item.label}  {_size(item.bytes)}")
        if removal.shared:
            stay = "1 stage stays: other runs need it"
            screen.print(
                stay if removal.shared == 1 else f"{removal.shared} stages stay: other runs need them"
            )
        for result in removal.needed_by:
            screen.print(f"needed by {_short(result.parent)}, which recreates it when it runs again")
        gone = removal.carry_out(opened) if yes else removal.items
        outcome = "deleted" if yes else "would be deleted; add --yes to delete them"
        screen.print(f"{_folders(gone)}: {outcome}")


def _short(path: Path) -> str:
    """Return the path relative to the working directory, if it is inside."""
    folder = Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def _folders(gone: Sequence[Item]) -> str:
    number = f"{len(gone)} folder{'' if len(gone) == 1 else 's'}"
    return f"{number}, {_size(sum(item.bytes for item in gone))}"
