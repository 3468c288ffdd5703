"""The verbs of Tombola: one function each, the same that the command line calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.paths import path_part
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan, plan_cells
from tombola.pipeline.runner import run_plan
from tombola.pipeline.sharing import plan_share
from tombola.pipeline.study import StudySettings, plan_study, read_study
from tombola.pipeline.watching import Watcher
from tombola.recipe.builtin import find_recipe
from tombola.recipe.grid import expand
from tombola.recipe.reading import Raw, load_recipe
from tombola.results.collecting import collect
from tombola.results.result import RESULTS, Result
from tombola.results.transfer import transfer_grid
from tombola.store.garbage import register_root
from tombola.store.store import Store

if TYPE_CHECKING:
    from tombola.attacks.base import Attack
    from tombola.attacks.report import AttackReport
    from tombola.evaluation.scores import Score
    from tombola.tickets.ticket import Ticket

Source = Path | str | Mapping[str, Any]
AnyStore = Store | Path | str | None

logger = logging.getLogger(__name__)


def run(
    recipe: Source,
    overrides: Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = True,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Result:
    """Run a recipe: every cell of its grid, each shared stage once, and nothing that is finished already.

    Args:
        recipe: A recipe file, the name of one that comes with the package, or a mapping.
        overrides: Changes such as `"draw.sparsity=0.5"`. A list makes a grid: `"seed=[1,2,3]"`.
        output: The folder for `results.json` and the tickets; by default `runs/NAME`.
        store: The folder or URL of finished stages; by default `TOMBOLA_STORE` or `~/.cache/tombola/store`.
        engine: Who runs the stages; by default this process.
        tickets: Whether to write a ticket for every cell with a mask.
        watcher: Is told what happens.
        **settings: Changes by keyword, with `__` for dots: `draw__sparsity=0.5`.
    """
    raw = load_recipe(find_recipe(recipe), overrides, **settings)
    return _carry_out(plan_recipe(raw), output, store, engine, watcher, tickets=tickets)


def plan_recipe(raw: Raw) -> Plan:
    """The plan of a recipe, as `run` would carry it out."""
    cells = expand(raw)
    first = cells[0].recipe
    return plan_cells(first.name, first.about, raw, cells)


def study(
    source: Source | StudySettings | Plan,
    overrides: Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = False,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Result:
    """Run a grid of recipes. What fails does not stop the rest: `Result.failures` names what is missing.

    Args:
        source: A study or recipe file, the name of a built-in one, a mapping, or a plan that is there already.
        overrides: Changes that are laid over every recipe, such as `"seed=[1,2,3]"`.
        output: The folder for `results.json`; by default `runs/NAME`.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default as the study says, else this process.
        tickets: Whether to write a ticket for every cell with a mask.
        watcher: Is told what happens.
        **settings: Changes by keyword, with `__` for dots.
    """
    if isinstance(source, Plan):
        plan = source
    else:
        read = source if isinstance(source, StudySettings) else read_study(source, overrides, **settings)
        plan, engine = plan_study(read), engine or read.engine
    return _carry_out(plan, output, store, engine, watcher, tickets=tickets, keep_going=True)


def share(
    recipe: Source,
    overrides: Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Result:
    """Draw a ticket for every task, train all tasks on one encoder with and without them, and compare.

    Args:
        recipe: A recipe with `tasks`: a file, the name of a built-in one, or a mapping.
        overrides: Changes such as `"seed=[1,2,3]"`.
        output: The folder for `results.json` and a multi-task ticket per seed; by default `runs/NAME`.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default this process.
        watcher: Is told what happens.
        **settings: Changes by keyword, with `__` for dots.
    """
    raw = load_recipe(find_recipe(recipe), overrides, **settings)
    return _carry_out(plan_share(raw), output, store, engine, watcher, tickets=True)


def transfer(
    recipe: Source,
    overrides: Iterable[str] = (),
    *,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    output: Path | str | None = None,
    store: AnyStore = None,
    engine: Local | Ray | None = None,
    tickets: bool = True,
    watcher: Watcher | None = None,
) -> Result:
    """Search a mask on every source task, train every target under each of them, and compare with dense.

    Args:
        recipe: A recipe with a search: a file, the name of a built-in one, or a mapping.
        overrides: Changes such as `"draw.sparsity=0.7"`.
        sources: Tasks whose masks are tried; by default the recipe's `search.task`, else the targets.
        targets: Tasks to train on; by default the recipe's `task`.
        output: The folder for `results.json` and the tickets; by default `runs/NAME`.
        store: The folder or URL of finished stages.
        engine: Who runs the stages; by default this process.
        tickets: Whether to write tickets.
        watcher: Is told what happens.

    Returns:
        The result; its `transfer()` is the matrix of differences.
    """
    raw = transfer_grid(load_recipe(find_recipe(recipe), overrides), list(sources), list(targets))
    return _carry_out(plan_recipe(raw), output, store, engine, watcher, tickets=tickets)


def _carry_out(
    plan: Plan,
    output: Path | str | None,
    store: AnyStore,
    engine: Local | Ray | None,
    watcher: Watcher | None,
    *,
    tickets: bool,
    keep_going: bool = False,
) -> Result:
    """Run a plan, collect what came out, and keep it."""
    store = store if isinstance(store, Store) else Store(store)
    folder = Path(output) if output is not None else Path("runs") / path_part(plan.name)
    outcome = run_plan(plan, store, folder / RESULTS, engine=engine, watcher=watcher, keep_going=keep_going)
    result = Result(collect(plan, outcome, store, folder, tickets=tickets), folder)
    if is_main():
        result.save()
        register_root(store, folder / RESULTS, plan.stages, finished=True)
    return result


def evaluate(
    model: Ticket | str | Path,
    on: Iterable[str] = ("validation",),
    *,
    task: str | None = None,
    data: Path | str | None = None,
    limit: int | None = None,
    max_length: int | None = None,
) -> dict[str, dict[str, Score]]:
    """Score a ticket or any transformers classifier, each metric with its standard error.

    Args:
        model: A ticket, a model folder or a hub id.
        on: Splits of the model's task (`validation`), other tasks (`hans`) or both (`reviews_tweets/test`).
        task: The model's task; a ticket knows its own.
        data: The root of local data folders.
        limit: Use a random subset of this size.
        max_length: Tokens that texts are cut at; by default as the ticket was trained, else 128.

    Returns:
        Scores by data set and metric.
    """
    from tombola.evaluation.evaluate import evaluate_split
    from tombola.models.loading import load_tokenizer
    from tombola.tasks import Task
    from tombola.tasks.targets import find_target
    from tombola.tickets.opening import open_classifier

    opened = open_classifier(model, task, max_length)
    tokenizer = load_tokenizer(opened.folder)
    scores = {}
    for target in on:
        name, split = find_target(target, opened.task)
        loaded = Task.named(name).load(split, folder=Path(data) if data else None, limit=limit)
        found = evaluate_split(opened.model, tokenizer, loaded, max_length=opened.max_length)
        for note in found.notes:
            logger.warning("%s", note)
        scores[target] = found.scores
    return scores


def attack(
    model: Any,
    recipe: str | Attack = "textfooler",
    *,
    task: str | None = None,
    split: str = "validation",
    tokenizer: Any = None,
    examples: Any = None,
    labels: Sequence[str] | None = None,
    attackable: Sequence[str] | None = None,
    n: int | None = None,
    seed: int = 0,
    query_budget: int | None = None,
    vectors: Path | str | None = None,
    mlm: str | None = None,
    data: Path | str | None = None,
    max_length: int | None = None,
    resume: Path | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> AttackReport:
    """Attack a ticket, a model folder, or any transformers classifier in memory.

    Args:
        model: A ticket, a model folder, a hub id, or a model in memory, which needs `tokenizer`.
        recipe: An attack's name, for the published settings, or an `Attack` with your own.
        task: The task that examples are drawn from; a ticket knows its own.
        split: The split of the task.
        tokenizer: The tokenizer of a model in memory.
        examples: A `Split`, or pairs of (text or two texts, label number), in place of a task's split.
        labels: Names of the labels, where `examples` are pairs.
        attackable: The columns that may be changed, if not those that the task names.
        n: Size of the class-balanced random sample; by default all examples.
        seed: Which random sample.
        query_budget: Most queries for one example.
        vectors: A file of word vectors for synonyms; by default the embedded ones.
        mlm: A masked language model, for `bert_attack`.
        data: The root of local data folders.
        max_length: Tokens that texts are cut at; by default as the ticket was trained, else 128.
        resume: A JSON-lines file for finished examples; the same call goes on after them.
        progress: Called with the number of examples that have just ended.
    """
    from tombola.attacks import Resources
    from tombola.attacks.run import attack as attack_model
    from tombola.models.loading import load_tokenizer
    from tombola.tasks import Task
    from tombola.tickets.opening import open_classifier
    from tombola.tickets.ticket import Ticket

    if isinstance(model, str | Path | Ticket):
        opened = open_classifier(model, task, max_length, needs_task=examples is None)
        classifier, tokenizer = opened.model, tokenizer or load_tokenizer(opened.folder)
        task, max_length = opened.task, opened.max_length
    elif tokenizer is None:
        raise TombolaError("a model in memory is attacked with its tokenizer: pass tokenizer=…")
    else:
        classifier = model
    if examples is None:
        if task is None:
            raise TombolaError("nothing to attack the model on: pass task=… or examples=…")
        examples = Task.named(task).load(split, folder=Path(data) if data else None)
    if resume is not None:
        Path(resume).parent.mkdir(parents=True, exist_ok=True)
    return attack_model(
        classifier,
        tokenizer,
        examples,
        recipe,
        n=n,
        seed=seed,
        labels=labels,
        attackable=attackable,
        query_budget=query_budget,
        resources=Resources(vectors=vectors, mlm=mlm),
        max_length=max_length or 128,
        resume=resume,
        progress=progress,
    )
