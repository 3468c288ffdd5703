"""tombola compress"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from tombola.cli.console import Screen
from tombola.cli.options import verb
from tombola.cli.outcome import show_compression, show_notes, show_plan, write_page
from tombola.cli.running import EngineOptions
from tombola.errors import TombolaError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@verb(long=True, resumes=True)
def compress(
    screen: Screen,
    model: Annotated[
        str, typer.Argument(help="A fine-tuned classifier or a pre-trained model: folder or hub id.")
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="A task, a task file, a CSV, TSV, JSONL or Parquet file of texts and labels, or a folder with "
            "train.csv, test.csv …"
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes to the recipe, as key=value.")
    ] = None,
    speedup: Annotated[
        float | None, typer.Option(help="Target speed-up over the original.", show_default="2")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="Target latency, such as 5ms, instead of a speed-up.")
    ] = None,
    parameters: Annotated[
        float | None, typer.Option(help="Share of parameters to keep, instead of a speed-up.")
    ] = None,
    fastest: Annotated[
        bool, typer.Option("--fastest", help="Choose the fastest ticket --within the accepted loss.")
    ] = False,
    within: Annotated[float, typer.Option(help="Accepted loss, in points of the score.")] = 1.0,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="What to make the ticket robust to: typos, synonyms or none.", show_default="typos"
        ),
    ] = None,
    time: Annotated[str | None, typer.Option(help="Time limit for training the ticket, such as 30m.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="The text column; give it twice for pairs.")] = None,
    label: Annotated[str | None, typer.Option(help="The label column.")] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="A file with more training texts, labelled by the original.")
    ] = None,
    batch_size: Annotated[
        list[int] | None, typer.Option(help="Batch size to time; may be repeated.", show_default="1 and 32")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads to time with.", show_default="all")] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where the model will run: cpu, or an accelerator such as cuda.", show_default="cpu"
        ),
    ] = None,
    recipe: Annotated[str, typer.Option(help="The recipe to use.")] = "compress/default",
    *,
    options: EngineOptions,
) -> None:
    """Make a classifier smaller, faster and more robust, and measure the result.

    [bold]Example:[/bold] tombola compress my-model reviews.csv --speedup 2
    """
    from tombola.api.orders import Order

    order = Order(
        model=model,
        data=data,
        speedup=speedup,
        fastest=fastest,
        latency=None if latency is None else 1000 * duration(latency, "--latency", "5ms"),
        parameters=parameters,
        within=within,
        against=withstood(against),
        batch_size=tuple(batch_size) if batch_size else None,
        threads=threads,
        device=device,
        seconds=None if time is None else duration(time, "--time", "90s, 30m or 2h", "s"),
        text=tuple(text or ()),
        label=label,
        unlabelled=unlabelled,
        recipe=recipe,
        overrides=tuple(overrides or ()),
    )
    engine = options.chosen_engine()
    with screen.watch("planning"):
        from tombola.api.compressing import carry_out, plan_order
        from tombola.api.orders import plan_compression

        planned = plan_compression(order)
    known = planned[1]
    show_notes(screen, known)
    if options.dry_run:
        with screen.watch("planning"):
            plan, notes = plan_order(order, planned, options.store)
        show_notes(screen, notes[len(known) :])
        show_plan(screen, plan, options.store)
        return
    with screen.watch("planning") as watcher:
        compression = carry_out(
            order, planned, output=options.output, store=options.store, engine=engine, watcher=watcher
        )
        page = write_page(compression.result, options.store) if options.report else None
    show_notes(screen, compression.notes[len(known) :])
    show_compression(screen, compression, page)


def withstood(against: list[str] | None) -> tuple[str, ...] | None:
    """Return what the ticket should withstand; None if that is left to the recipe."""
    if not against:
        return None
    if "none" in against and set(against) != {"none"}:
        raise TombolaError("--against none: contradicts the other --against options; remove one of them")
    return tuple(name for name in against if name != "none")


def duration(text: str, option: str, example: str, unit: str | None = None) -> float:
    """Return the seconds in a duration such as 30m, 5ms or 1.5h.

    Args:
        text: The duration.
        option: The option that it belongs to, for messages.
        example: What the option takes, for messages.
        unit: The unit of a number without one; None if it needs one.
    """
    parts = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", text)
    known = UNITS.get(parts[2] or unit or "") if parts else None
    if parts is None or known is None or float(parts[1]) == 0:
        raise TombolaError(f"{option} {text}: takes a time such as {example}")
    return float(parts[1]) * known
