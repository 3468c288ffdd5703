"""Verbs that look at tickets: evaluate, attack, inspect."""

from pathlib import Path
from typing import Annotated

import typer

from tombola.cli.options import Data, Model, TaskName, app


@app.command()
def evaluate(
    model: Model,
    on: Annotated[
        list[str] | None, typer.Option(help="A split, a task, or task/split; may be repeated.")
    ] = None,
    task: TaskName = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(help="Use a random subset of this size.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Keep the scores as JSON.")] = None,
) -> None:
    """Score a ticket or any classifier, with standard errors.

    [bold]Example:[/bold] tombola evaluate runs/quick/tickets/imp --on validation --on reviews_tweets/test
    """
    import json

    from tombola.cli import console, tables
    from tombola.tickets.judging import evaluate as judge

    scores = judge(model, on=on or ["validation"], task=task, data=data, limit=limit)
    console.out.print(tables.score_table(model, scores))
    if output:
        plain = {on: {name: score.as_dict() for name, score in found.items()} for on, found in scores.items()}
        output.write_text(json.dumps({"model": model, "scores": plain}, indent=1))
        console.say("scores", output)


@app.command()
def attack(
    model: Model,
    recipe: Annotated[
        str, typer.Option(help="The attack; `tombola list attacks` shows them.")
    ] = "textfooler",
    task: TaskName = None,
    split: Annotated[str, typer.Option(help="The split to sample from.")] = "validation",
    number: Annotated[
        int | None, typer.Option("-n", help="Examples, class-balanced; all by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which random sample.")] = 0,
    query_budget: Annotated[int | None, typer.Option(help="Most queries for one example.")] = None,
    vectors: Annotated[Path | None, typer.Option(help="Word vectors (text, .npz) for synonyms.")] = None,
    mlm: Annotated[str | None, typer.Option(help="Masked language model, for bert_attack.")] = None,
    data: Data = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens of an example; else as in training, or 128.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the examples go.", show_default="attacks/MODEL-ATTACK"),
    ] = None,
    as_task: Annotated[
        str | None, typer.Option(help="Also write the successes as a task of this name.")
    ] = None,
) -> None:
    """Attack a ticket or any classifier; an interrupted attack goes on where it stopped.

    [bold]Example:[/bold] tombola attack runs/quick/tickets/imp --recipe textfooler -n 500 --seed 0
    """
    from tombola.cli import console, tables
    from tombola.tickets.judging import attack as judge

    folder = output or Path("attacks") / f"{Path(model).name}-{recipe}"
    with console.counting(f"attack with {recipe}") as progress:
        report = judge(
            model,
            recipe,
            task=task,
            split=split,
            n=number,
            seed=seed,
            query_budget=query_budget,
            vectors=vectors,
            mlm=mlm,
            data=data,
            max_length=max_length,
            journal=folder / "journal.jsonl",
            progress=progress,
        )
    report.save(folder)
    console.out.print(tables.attack_table(model, report))
    console.say("examples", folder / "examples.csv")
    console.say("page", folder / "diff.html")
    if as_task:
        console.say("task", report.to_task(folder, as_task))


@app.command()
def inspect(
    what: Annotated[list[str], typer.Argument(help="Tickets (folders or hub ids) or mask files.")],
    union: Annotated[Path | None, typer.Option(help="Write the union of the masks to this file.")] = None,
    intersection: Annotated[Path | None, typer.Option(help="Write the intersection to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a page with heat maps to this file.")] = None,
) -> None:
    """Show masks: sparsity by layer and matrix, and how far several agree.

    [bold]Example:[/bold] tombola inspect runs/quick/tickets/* --plot masks.html
    """
    from tombola.cli import console, tables
    from tombola.tickets.comparison import Comparison

    compared = Comparison.of(what)
    for name, mask in compared.masks.items():
        console.out.print(tables.mask_table(name, mask))
    if len(compared.masks) > 1:
        console.out.print(tables.overlap_table(compared))
    if union:
        compared.union().save(union)
        console.say("union", union)
    if intersection:
        compared.intersection().save(intersection)
        console.say("intersection", intersection)
    if plot:
        from tombola.report import write_masks

        console.say("plot", write_masks(compared, plot))
