"""tombola attack"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tombola.cli.console import Screen
from tombola.cli.options import Data, MaxLength, Model, TaskName, verb
from tombola.errors import TombolaError

if TYPE_CHECKING:
    from tombola.attacks.base import Attack

OF_RUNS = ("runs", "tickets", "models")
"""Folders that say nothing about the models in them."""


@verb(long=True, resumes=True)
def attack(
    screen: Screen,
    model: Model,
    recipe: Annotated[str, typer.Option(help="The attack; see `tombola list attacks`.")] = "textfooler",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the attack; may be repeated."),
    ] = None,
    task: TaskName = None,
    split: Annotated[str, typer.Option(help="The split to sample from.")] = "validation",
    number: Annotated[
        int | None, typer.Option("-n", help="Number of examples, class-balanced; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random sample.")] = 0,
    query_budget: Annotated[int | None, typer.Option(help="Maximum queries per example.")] = None,
    vectors: Annotated[Path | None, typer.Option(help="Word vectors (text, .npz) for synonyms.")] = None,
    mlm: Annotated[str | None, typer.Option(help="Masked language model, for bert_attack.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Sentence encoder, for languages other than English.")
    ] = None,
    lexicon: Annotated[
        Path | None, typer.Option(help="Words with tags and synonyms (.tsv), for other languages.")
    ] = None,
    data: Data = None,
    max_length: MaxLength = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the attacked examples.", show_default="attacks/MODEL-ATTACK"
        ),
    ] = None,
    as_task: Annotated[
        str | None, typer.Option(help="Also write the successful attacks as a task with this name.")
    ] = None,
) -> None:
    """Attack a ticket or any classifier; an interrupted attack resumes where it stopped.

    [bold]Example:[/bold] tombola attack runs/bert_tickets-quick/tickets/imp_sparsity-0.5 --recipe textfooler -n 50
    """
    from tombola import api
    from tombola.cli import tables
    from tombola.cli.forecast import Job
    from tombola.foundations.paths import path_part

    chosen = _configured(recipe, changes or [])
    whole = output or Path("attacks") / path_part(f"{_name_of(model)}-{recipe}")
    tasks = _tasks(screen, model, task)
    folders = {one: whole / path_part(one) if one and len(tasks) > 1 else whole for one in tasks}
    labels = {one: f"attack with {recipe}" + (f" on {one}" if len(tasks) > 1 else "") for one in tasks}
    reports = {}
    with screen.watch("loading the model") as watcher:
        watcher.planned([Job("attack", label) for label in labels.values()], ())
        for one, folder in folders.items():
            with _alone_in(folder, screen), watcher.job("attack", labels[one]) as progress:
                reports[one] = api.attack(
                    model,
                    chosen,
                    task=one,
                    split=split,
                    n=number,
                    seed=seed,
                    query_budget=query_budget,
                    vectors=vectors,
                    mlm=mlm,
                    encoder=encoder,
                    lexicon=lexicon,
                    data=data,
                    max_length=max_length,
                    resume=folder / "journal.jsonl",
                    progress=progress,
                )
                reports[one].save(folder)
    if len(tasks) > 1:
        screen.print(tables.attacks_table(model, {str(one): report for one, report in reports.items()}))
    for one, report in reports.items():
        name = f"{one}: " if len(tasks) > 1 else ""
        if not name:
            screen.print(tables.attack_table(model, report))
        screen.wrote(f"{name}examples", folders[one] / "examples.csv")
        screen.wrote(f"{name}page", folders[one] / "diff.html")
        if as_task:
            screen.wrote(f"{name}task", report.to_task(folders[one], f"{as_task}_{one}" if name else as_task))
    figures: dict[str, Any] = {str(one or model): report.summary() for one, report in reports.items()}
    screen.finish(attack=recipe, figures=figures)


def _name_of(model: str) -> str:
    """Return a model's name; that of a folder or file includes its run, since runs call their models alike."""
    place = Path(model).resolve()
    if not place.exists():
        return Path(model).name
    inside = place.is_relative_to(Path.cwd())
    parts = place.relative_to(Path.cwd()).parts if inside else place.parts[-2:]
    return "-".join(part for part in parts if part not in OF_RUNS) or place.name


@contextmanager
def _alone_in(folder: Path, screen: Screen) -> Iterator[None]:
    """Hold the folder's lock; if another process is attacking into it, wait, then continue from its examples.

    Folders created for an attack that could not start are removed.
    """
    from filelock import FileLock, Timeout

    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "attack.lock"
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        screen.complain(f"another process is writing an attack to {folder}: waiting for it to finish")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
        if created and set(folder.iterdir()) <= {file}:
            file.unlink(missing_ok=True)
            with suppress(OSError):  # other processes write there too
                for parent in created:
                    parent.rmdir()


def _tasks(screen: Screen, model: str, task: str | None) -> list[str | None]:
    """Return the tasks to attack: the given one, or all classification tasks of a multi-task ticket."""
    from tombola.tasks import Task
    from tombola.tickets.multitask import MultiTaskTicket, is_multi_task
    from tombola.tickets.opening import folder_of

    if task is not None or not is_multi_task(folder := folder_of(model)):
        return [task]
    tasks: list[str | None] = []
    for name, entry in MultiTaskTicket.from_pretrained(folder).info["tasks"].items():
        kind = Task.named(str(entry["task"])).kind
        if kind == "classification":
            tasks.append(name)
        else:
            screen.complain(f"{name} is skipped: attacks need a classification task, and it is a {kind} task")
    if not tasks:
        raise TombolaError(f"no task of {model} is a classification task, so there is nothing to attack")
    return tasks


def _configured(name: str, changes: list[str]) -> str | Attack:
    """Return the attack with its published settings, overridden by the user's."""
    if not changes:
        return name
    from tombola.attacks.base import configure
    from tombola.recipe.reading import load_recipe

    return configure(name, load_recipe({}, changes))
