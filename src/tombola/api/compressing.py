"""Make a classifier smaller, faster and more robust: `compress` and `quickstart`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tombola.api.choosing import choice_recipe, in_time, only_ticket, with_choice_data
from tombola.api.orders import Order, plan_compression
from tombola.api.original import ORIGINAL, fine_tuned, is_finetuned, plan_original, untrained
from tombola.api.running import AnyStore, plan_recipe, run, study
from tombola.api.unlabelled import label_stage, with_planned_texts, with_texts
from tombola.errors import TombolaError
from tombola.foundations.paths import path_part, require_own
from tombola.foundations.sequences import as_tuple
from tombola.models.finding import find_folder
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan
from tombola.pipeline.runner import run_plan
from tombola.pipeline.watching import Watcher
from tombola.recipe.reading import Raw
from tombola.results.collecting import onnx_files, write_cell
from tombola.results.compression import Compression, chosen_speedup, judge
from tombola.results.result import RESULTS, Result
from tombola.results.run_folder import RunFolder, require_writable
from tombola.store.roots import register_root, running
from tombola.store.stage import Stage
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.tickets.ticket import TICKET


def compress(
    model: str | Path,
    data: str | Path,
    *,
    speedup: float | Literal["recipe"] | None = "recipe",
    latency: float | None = None,
    parameters: float | None = None,
    within: float = 1.0,
    against: str | Sequence[str] | None = None,
    batch_size: int | Sequence[int] | None = None,
    threads: int | None = None,
    device: str | None = None,
    seconds: float | None = None,
    text: str | Sequence[str] = (),
    label: str | None = None,
    unlabelled: str | Path | None = None,
    recipe: str | Path = "compress/default",
    overrides: str | Iterable[str] = (),
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Make a classifier faster and more robust at nearly the same accuracy, and measure the result.

    Args:
        model: A fine-tuned classifier (a folder or hub id), or a pre-trained model, which is fine-tuned first.
        data: A task's name, a task file, a .csv, .tsv, .jsonl, .json or .parquet file of texts and labels, or a folder
            with such a file called train and, if there are any, validation and test.
        speedup: Target speed-up over the original; by default the recipe's, which is 2 in `compress/default`. None
            chooses the fastest ticket within the accepted loss, unless another target is given.
        latency: Target latency of a forward pass in milliseconds, instead of a speed-up.
        parameters: Share of the parameters to keep, instead of a speed-up.
        within: Accepted loss, in points of the headline score.
        against: What to make the ticket robust to: `typos`, `synonyms`, a list of both, or an empty list; by default
            the recipe's, which is `typos` in `compress/default`.
        batch_size: Batch size to time, or several, each of which must meet the target. By default the recipe's, 1 and
            32 in `compress/default`.
        threads: Threads of a forward pass; by default PyTorch's setting.
        device: Where the model will run and is timed: `cpu` (the default), or an accelerator that PyTorch supports,
            such as `cuda`.
        seconds: Time limit for training the ticket; by default the recipe's epochs are trained.
        text: The text column of a data file, or the two columns of text pairs; inferred by default.
        label: The label column; inferred by default.
        unlabelled: A file with more training texts, labelled by the original.
        recipe: The recipe to use.
        overrides: Changes to the recipe, one or several, such as `"retrain.epochs=8"`.
        output: The folder for the model, the results and the report; by default `runs/compress-TASK`.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.

    Returns:
        The result, with a row for the original and one for the ticket, the folder of the ticket, and the verdict.
    """
    sizes = (batch_size,) if isinstance(batch_size, int) else batch_size
    order = Order(
        model=str(model),
        data=str(data),
        speedup=None if speedup == "recipe" else speedup,
        fastest=speedup is None and latency is None and parameters is None,
        latency=latency,
        parameters=parameters,
        within=within,
        against=None if against is None else as_tuple(against),
        batch_size=None if sizes is None else tuple(sizes),
        threads=threads,
        device=device,
        seconds=seconds,
        text=as_tuple(text),
        label=label,
        unlabelled=None if unlabelled is None else str(unlabelled),
        recipe=str(recipe),
        overrides=as_tuple(overrides),
    )
    return carry_out(order, output=output, store=store, engine=engine, watcher=watcher)


def carry_out(
    order: Order,
    planned: tuple[Raw, tuple[str, ...]] | None = None,
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Compress a classifier according to an order.

    Args:
        order: The arguments of `compress`.
        planned: The recipe and the notes that `plan_compression` returns for the order, if they are known.
        output: The folder for the model, the results and the report; by default `runs/compress-TASK`.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
    """
    store = Store.of(store)
    raw, notes = planned or plan_compression(order)
    folder = Path(output) if output is not None else Path("runs") / path_part(f"compress-{_name(raw)}")
    if is_main():
        require_writable(folder)
    _check_place(folder / "model", raw["model"])
    raw, chosen_on = with_choice_data(raw)
    raw, dense, origin = fine_tuned(raw, store, folder, engine, watcher)
    if order.unlabelled is not None:
        label = label_stage(raw, order.unlabelled)
        dense = [*dense, label]
        run_plan(dense, store, folder / ORIGINAL, engine=engine, watcher=watcher)
        raw = with_texts(raw, label.read(store.open(label)))
        origin = {}  # in one recipe, the original would be trained on these texts too
    with running(store, folder / ORIGINAL, dense) if dense and is_main() else nullcontext():
        return _compress(order, raw, origin, chosen_on, notes, dense, folder, store, engine, watcher)


def _compress(
    order: Order,
    raw: Raw,
    origin: Raw,
    chosen_on: str | None,
    notes: tuple[str, ...],
    dense: Sequence[Stage[Any]],
    folder: Path,
    store: Store,
    engine: Local | Ray | None,
    watcher: Watcher | None,
) -> Compression:
    """Draw, train and judge the ticket of a fine-tuned classifier.

    The stages in `dense` trained it; `origin` has the sections of the recipe for that, if the ticket's may name them.
    """
    raw, timing_notes = _within_time(raw, order, store)
    notes += timing_notes
    if chosen_on is not None:
        tried = plan_recipe(choice_recipe(raw, chosen_on))
        result = study(
            tried, output=folder / "choice", store=store, engine=engine, watcher=watcher, replace=True
        )
        speedup = chosen_speedup(result, chosen_on, order.within)
        raw = {**raw, "draw": {**raw["draw"], "speedup": speedup}}
        notes += (
            f"speed-up {speedup:g}: the largest that loses at most {order.within:g} points on {chosen_on}",
        )
    plan = replace(plan_recipe(raw), recipe={**raw, **origin})
    result = run(
        plan, output=folder, store=store, engine=engine, watcher=watcher, tickets=False, replace=True
    )
    if is_main():
        _write_model(plan, result, store, folder, order.model, origin)
        register_root(store, folder / RESULTS, [*dense, *plan.stages], finished=True)
    return judge(result, store, within=order.within, model=folder / "model", notes=notes)


def plan_order(
    order: Order, planned: tuple[Raw, tuple[str, ...]] | None = None, store: AnyStore = None
) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan of an order and notes on it, for a dry run; at most a few steps are trained, for the estimate.

    If the model is not fine-tuned yet, the plan begins with the training of the original, for which the untrained
    model stands in. If the speed-up is to be chosen, this is the plan of the choice, which contains all the trainings.

    Args:
        order: The arguments of `compress`.
        planned: The recipe and the notes that `plan_compression` returns for the order, if they are known.
        store: The folder or URL of the store of finished stages.
    """
    raw, notes = planned or plan_compression(order)
    raw, chosen_on = with_choice_data(raw)
    dense = [] if is_finetuned(raw["model"], Task.named(raw["task"])) else plan_original(raw).cells
    raw = untrained(raw)
    if order.unlabelled is not None:
        raw = with_planned_texts(raw, order.unlabelled)
    raw, timing_notes = _within_time(raw, order, store)
    notes += timing_notes
    plan = plan_recipe(raw if chosen_on is None else choice_recipe(raw, chosen_on))
    return replace(plan, cells=[*dense, *plan.cells]), notes


def _within_time(raw: Raw, order: Order, store: AnyStore) -> tuple[Raw, tuple[str, ...]]:
    """Return the recipe with as many epochs as the order's time limit allows, if it has one, and notes on that."""
    if order.seconds is None:
        return raw, ()
    return in_time(raw, plan_recipe(only_ticket(raw)), Store.of(store), order.seconds)


def quickstart(
    *,
    output: Path | str = "quickstart",
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Compress a first classifier from the model and the data that come with the package.

    Args:
        output: The folder for the model, the results and the report.
        store: The folder or URL of the store of finished stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
    """
    order = Order("minilm", "reviews", batch_size=(32,), recipe="quickstart")
    return carry_out(order, output=output, store=store, engine=engine, watcher=watcher)


def _check_place(place: Path, model: str) -> None:
    """Raise an error before the work if its result could not be written, or would replace the model to compress."""
    if place.is_dir() and find_folder(model).resolve() == place.resolve():
        raise TombolaError(
            f"{model}: this model would be overwritten by the result: choose another output folder with -o"
        )
    require_own(place, TICKET)


def _name(raw: Raw) -> str:
    return str(raw["name"]).removeprefix("compress-")


def _write_model(plan: Plan, result: Result, store: Store, folder: Path, model: str, origin: Raw) -> None:
    """Write the ticket as a model folder, together with its ONNX files.

    The folder names the model that the user named, and a recipe that starts from it: nobody else knows the path of the
    original that was trained from it.
    """
    by_runtime = {
        cell.cell.recipe.runtime: (cell, found)
        for cell, found in zip(plan.cells, result.cells, strict=True)
        if cell.cell.variant == "ticket"
    }
    cell, found = by_runtime.get("transformers") or next(iter(by_runtime.values()))
    beside = onnx_files([other for other, _ in by_runtime.values()], store)
    with RunFolder(folder).writing():
        write_cell(cell, found, store, folder / "model", beside, model, origin)
