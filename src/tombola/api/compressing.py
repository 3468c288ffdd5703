"""The verb that makes a classifier smaller, faster and tougher: compress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tombola.api.orders import Order, plan_compression
from tombola.api.running import AnyStore, plan_recipe, run
from tombola.errors import TombolaError
from tombola.foundations.paths import path_part
from tombola.models.finding import find_folder
from tombola.models.safety import read_config
from tombola.pipeline.costs import estimate
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.plan import Plan
from tombola.pipeline.runner import run_plan
from tombola.pipeline.watching import Watcher
from tombola.recipe.reading import Raw
from tombola.results.collecting import write_cell
from tombola.results.compression import Compression, chosen_speedup, judge
from tombola.results.result import Result
from tombola.store.store import Store
from tombola.tasks import Task

SPEEDUPS = (1.5, 2.0, 3.0, 4.0)
"""The speed-ups that are tried where none is asked for."""
DENSE = ("model", "pooler", "task", "seed", "train", "data", "precision")
"""The parts of the recipe that say how the original is trained."""
SHORTEST, LONGEST = 1.0, 30.0  # epochs that a budget of time may come to


def compress(
    model: str | Path,
    data: str | Path,
    *,
    speedup: float | None = 2.0,
    latency: float | None = None,
    parameters: float | None = None,
    within: float = 1.0,
    against: Sequence[str] = ("typos",),
    batch_size: Sequence[int] = (1, 32),
    threads: int | None = None,
    seconds: float | None = None,
    text: Sequence[str] = (),
    label: str | None = None,
    recipe: str | Path = "compress/default",
    overrides: Iterable[str] = (),
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Make a classifier at least twice as fast, as accurate and tougher, and prove it.

    Args:
        model: A fine-tuned classifier (a folder or hub id), or a pre-trained model, which is fine-tuned first.
        data: A task's name, a task file, or a .csv, .tsv, .jsonl, .json or .parquet file of texts and labels.
        speedup: Times faster than the original; None takes the fastest ticket within the loss, unless another target
            is given.
        latency: Milliseconds of a forward pass, in place of a speed-up.
        parameters: Share of the parameters that is left, in place of a speed-up.
        within: Points of the headline score that may be lost.
        against: What it is to withstand: some of typos, synonyms.
        batch_size: Texts in a forward pass; of several sizes the slowest has to meet the target.
        threads: Threads of a forward pass; by default as PyTorch has.
        seconds: Time for the ticket's training; by default as the recipe says.
        text: The column of the text in a data file, or two of a pair; recognised if not given.
        label: The column of the label; recognised if not given.
        recipe: The recipe that is followed.
        overrides: Changes of the recipe, such as `"retrain.epochs=8"`.
        output: The folder for the model, the results and the report; by default `runs/compress-TASK`.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default this process.
        watcher: Is told what happens.

    Returns:
        The result, the table of original and ticket, and the verdict.
    """
    order = Order(
        model=str(model),
        data=str(data),
        speedup=speedup,
        latency=latency,
        parameters=parameters,
        within=within,
        against=tuple(against),
        batch_size=tuple(batch_size),
        threads=threads,
        seconds=seconds,
        text=tuple(text),
        label=label,
        recipe=str(recipe),
        overrides=tuple(overrides),
    )
    return carry_out(order, output=output, store=store, engine=engine, watcher=watcher)


def carry_out(
    order: Order,
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Compress as an order says.

    Args:
        order: What is asked for.
        output: The folder for the model, the results and the report; by default `runs/compress-TASK`.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default this process.
        watcher: Is told what happens.
    """
    store = store if isinstance(store, Store) else Store(store)
    raw, notes = plan_compression(order)
    folder = Path(output) if output is not None else Path("runs") / path_part(f"compress-{_name(raw)}")
    raw = _finetuned(raw, store, folder, engine, watcher)
    if order.seconds is not None:
        raw = _in_time(raw, store, order.seconds)
    if "speedup" in raw["draw"] and raw["draw"]["speedup"] is None:
        raw = _fastest(raw, order, store, folder, engine, watcher)
    plan = plan_recipe(raw)
    result = run(
        plan, output=folder, store=store, engine=engine, watcher=watcher, tickets=False, replace=True
    )
    _write_model(plan, result, store, folder)
    return judge(result, store, within=order.within, model=folder / "model", notes=notes)


def quickstart(
    *,
    output: Path | str = "quickstart",
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
) -> Compression:
    """Compress a first classifier with nothing but the package: its own model and its own data.

    Args:
        output: The folder for the model, the results and the report.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default this process.
        watcher: Is told what happens.
    """
    order = Order("minilm", "reviews", batch_size=(32,), recipe="quickstart")
    return carry_out(order, output=output, store=store, engine=engine, watcher=watcher)


def _name(raw: Raw) -> str:
    return str(raw["name"]).removeprefix("compress-")


def is_finetuned(model: str, task: Task) -> bool:
    """Whether a model brings a trained head for the task: a classifier with as many outputs.

    Args:
        model: A folder or a hub id.
        task: The task.
    """
    config = read_config(find_folder(model))
    names = config.get("architectures") or [""]
    if not str(names[0]).endswith("ForSequenceClassification"):
        return False
    outputs = len(config.get("id2label") or {}) or 2
    if outputs != task.num_labels:
        raise TombolaError(
            f"{model} is a classifier with {outputs} outputs, and {task.name} has {task.num_labels} labels: take a "
            "classifier of this task, or a pre-trained model"
        )
    return True


def _finetuned(
    raw: Raw, store: Store, folder: Path, engine: Local | Ray | None, watcher: Watcher | None
) -> Raw:
    """The recipe on a fine-tuned classifier: the user's, or the pre-trained model after a training of its own."""
    if is_finetuned(raw["model"], Task.named(raw["task"])):
        return {**raw, "pooler": "own", "train": {**raw["train"], "epochs": 0}}
    dense: Raw = {name: raw[name] for name in DENSE if name in raw}
    plan = plan_recipe({**dense, "name": f"{raw['name']}-original", "evaluate": {"on": []}})
    run_plan(plan, store, folder / "original.json", engine=engine, watcher=watcher)
    trained = store.open(plan.cells[0].model)
    return {**raw, "model": str(trained), "pooler": "own", "train": {**raw["train"], "epochs": 0}}


def _in_time(raw: Raw, store: Store, seconds: float) -> Raw:
    """The recipe with as many epochs of retraining as the time allows."""
    plan = plan_recipe(_only_ticket(raw))
    costs = {cost.kind: cost for cost in estimate(plan, store)}
    train = costs["train"]
    if not train.steps or train.seconds is None:
        return raw
    epochs = float(raw["retrain"]["epochs"]) * seconds / train.seconds
    chosen = min(LONGEST, max(SHORTEST, int(epochs)))
    return {**raw, "retrain": {**raw["retrain"], "epochs": chosen}}


def _only_ticket(raw: Raw) -> Raw:
    """The recipe of the ticket alone, as it is trained."""
    plain = {
        name: value for name, value in raw.items() if name not in ("attack", "measure", "runtime", "variants")
    }
    return {
        **plain,
        "draw": {**raw["draw"], **({"speedup": 2.0} if raw["draw"].get("speedup", 0) is None else {})},
    }


def _fastest(
    raw: Raw, order: Order, store: Store, folder: Path, engine: Local | Ray | None, watcher: Watcher | None
) -> Raw:
    """The recipe with the largest of several speed-ups whose ticket loses no more than allowed, on data of its own."""
    task = Task.named(raw["task"])
    held = (
        "validation"
        if task.default_split != "validation" and "validation" in task.split_names()
        else "holdout"
    )
    tried: dict[str, Any] = {
        **_only_ticket(raw),
        "name": f"{raw['name']}-choice",
        "evaluate": {"on": [held]},
        "variants": {"original": {"search": None, "defend": []}, "ticket": {}},
    }
    tried["draw"] = {**raw["draw"], "speedup": list(SPEEDUPS)}
    if held == "holdout":
        raise TombolaError(
            f"the fastest ticket is chosen on data that is not reported, and {task.name} has none: give --speedup, or "
            "a task with a validation and a test split"
        )
    result = run(
        tried,
        output=folder / "choice",
        store=store,
        engine=engine,
        watcher=watcher,
        tickets=False,
        replace=True,
    )
    return {**raw, "draw": {**raw["draw"], "speedup": chosen_speedup(result, held, order.within)}}


def _write_model(plan: Plan, result: Result, store: Store, folder: Path) -> None:
    """The ticket as a model folder, with its ONNX files and the task beside it."""
    import shutil

    from tombola.shrink.onnx_model import MODEL

    target = folder / "model"
    by_runtime = {
        cell.cell.recipe.runtime: (cell, found)
        for cell, found in zip(plan.cells, result.cells, strict=True)
        if cell.cell.variant == "ticket"
    }
    cell, found = by_runtime["transformers"]
    write_cell(cell, found, store, target)
    for runtime, name in (("onnx", MODEL), ("onnx_int8", "model.int8.onnx")):
        if runtime in by_runtime and (stage := by_runtime[runtime][0].exported) is not None:
            shutil.copy(store.open(stage) / MODEL, target / name)
    task = Path(cell.cell.recipe.task)
    if task.suffix in (".yaml", ".yml"):
        shutil.copy(task, target / "task.yaml")
