"""Work on finished tickets and other models: evaluate, attack, import, inspect, shrink, export."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.sequences import as_tuple
from tombola.tickets.importing import import_mask as import_mask

if TYPE_CHECKING:
    from tombola.attacks.base import Attack
    from tombola.attacks.report import AttackReport
    from tombola.evaluation.scores import Score
    from tombola.shrink import Export, ModelShape
    from tombola.store.stage import Progress
    from tombola.tickets.comparison import Comparison
    from tombola.tickets.multitask import MultiTaskTicket
    from tombola.tickets.shrinking import Packing, Shrinkage
    from tombola.tickets.ticket import Ticket

logger = logging.getLogger(__name__)


def evaluate(
    model: Ticket | MultiTaskTicket | str | Path,
    on: str | Iterable[str] = "validation",
    *,
    task: str | None = None,
    data: Path | str | None = None,
    limit: int | None = None,
    max_length: int | None = None,
    stride: int | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, Score]]:
    """Score a ticket or any transformers classifier, each metric with its standard error.

    Args:
        model: A ticket, a multi-task ticket, a model folder, a hub id or an ONNX file with its config next to it.
        on: Splits of the model's task (`validation`), other tasks (`hans`) or splits of these (`reviews_tweets/test`).
            Add an augmentation to change the texts: `test+typos`.
        task: The model's task; tickets know theirs. For a multi-task ticket, the task to score; by default all.
        data: The root of local data folders.
        limit: Use a random subset of this size.
        max_length: Truncate texts to this many tokens; by default the length that the ticket was trained with, or 128.
        stride: Read longer texts in windows that start this many tokens apart, and average the probabilities of the
            windows; by default longer texts are truncated.
        progress: Called with the number of examples done, the total, and the latest score.

    Returns:
        Scores by data set and metric. If all tasks of a multi-task ticket are scored, the names of data sets start
        with the task: `rte: validation`.
    """
    from tombola.evaluation.evaluate import evaluate_split
    from tombola.evaluation.long_texts import LongTexts
    from tombola.models.loading import load_tokenizer
    from tombola.pipeline.references import DataSource
    from tombola.tasks.targets import find_target
    from tombola.tickets.opening import open_classifier, tasks_of

    shared = tasks_of(model) if task is None else []
    folder, targets = str(data) if data else None, as_tuple(on)
    work, long = [], LongTexts(stride)
    names: list[str | None] = [*shared] or [task]
    for name in names:
        opened = open_classifier(model, name, max_length)
        for target in targets:
            source, part = find_target(target, opened.task)
            loaded = DataSource(source, part, folder, limit, task_settings=opened.settings).load()
            long.check(loaded.task)
            work.append((f"{name}: {target}" if shared else target, opened, loaded))
    scores, done, whole = {}, 0, sum(len(split) for _, _, split in work)
    for label, opened, split in work:

        def report(step: int, steps: int, figures: Any, done: int = done, size: int = len(split)) -> None:
            if progress is not None:
                progress(done + size * step // steps, whole, figures)

        evaluation = evaluate_split(
            opened.model,
            load_tokenizer(opened.folder),
            split,
            max_length=opened.max_length,
            progress=report,
            long=long,
        )
        for note in evaluation.notes:
            logger.warning("%s", note)
        scores[label] = evaluation.scores
        done += len(split)
        report(1, 1, {name: score.value for name, score in list(evaluation.scores.items())[:1]}, done, 0)
    long.warn()
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
    encoder: str | None = None,
    lexicon: Path | str | None = None,
    language: str | None = None,
    data: Path | str | None = None,
    max_length: int | None = None,
    resume: Path | str | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """Attack a ticket, a model folder, or any transformers classifier in memory.

    Args:
        model: A ticket, a multi-task ticket, a model folder, a hub id, an ONNX file with its config next to it, or a
            model in memory, which needs `tokenizer`.
        recipe: An attack's name, for the published settings, or an `Attack` with your own.
        task: The task to draw examples from; tickets know theirs, but a multi-task ticket needs it.
        split: The split of the task.
        tokenizer: The tokenizer of a model in memory.
        examples: A `Split`, or pairs of (text or two texts, label number), instead of a task's split.
        labels: Names of the labels, if `examples` are pairs.
        attackable: The columns that attacks may change; by default those that the task defines.
        n: Size of the class-balanced random sample; by default all examples.
        seed: The seed of the random sample.
        query_budget: The maximum number of queries per example.
        vectors: A file of word vectors for synonyms; by default the built-in vectors.
        mlm: A masked language model, for `bert_attack`.
        encoder: A sentence encoder that measures the similarity of texts; by default the built-in one, for English.
        lexicon: A file of words with parts of speech and synonyms; by default the built-in one, for English.
        language: The language of `examples`, such as `de`; by default the task's, else English.
        data: The root of local data folders.
        max_length: Truncate texts to this many tokens; by default the length that the ticket was trained with, or 128.
        resume: A JSON-lines file of finished examples; the same call later continues after them.
        progress: Called with the number of examples done, the total, and the accuracy under attack so far.
    """
    from tombola.attacks import Resources, configure
    from tombola.attacks.resources import ENCODER, idle_options
    from tombola.attacks.run import attack as attack_model
    from tombola.evaluation.long_texts import LongTexts
    from tombola.models.loading import load_tokenizer
    from tombola.tasks import Split, Task
    from tombola.tickets.multitask import MultiTaskTicket
    from tombola.tickets.opening import open_classifier
    from tombola.tickets.ticket import Ticket

    chosen = configure(recipe, {}) if isinstance(recipe, str) else recipe
    for name in idle_options({"vectors": vectors, "mlm": mlm, "lexicon": lexicon}, [chosen]):
        logger.warning("%s: has no effect, since %s does not use it; leave it out", name, chosen.name)
    settings: dict[str, Any] = {}
    if isinstance(model, str | Path | Ticket | MultiTaskTicket):
        opened = open_classifier(model, task, max_length, needs_task=examples is None)
        classifier, tokenizer = opened.model, tokenizer or load_tokenizer(opened.folder)
        task, max_length, settings = opened.task, opened.max_length, dict(opened.settings)
    elif tokenizer is None:
        raise TombolaError("a model in memory needs its tokenizer: pass tokenizer=…")
    else:
        classifier = model
    if examples is None:
        if task is None:
            raise TombolaError("there are no examples to attack: pass task=… or examples=…")
        known = Task.named(task).with_settings(settings)
        examples = known.load(split, folder=Path(data) if data else None)
    if resume is not None:
        Path(resume).parent.mkdir(parents=True, exist_ok=True)
    return attack_model(
        classifier,
        tokenizer,
        examples,
        chosen,
        n=n,
        seed=seed,
        labels=labels,
        attackable=attackable,
        query_budget=query_budget,
        resources=Resources(
            vectors=vectors,
            encoder=encoder or ENCODER,
            mlm=mlm,
            words=lexicon,
            language=language or (examples.task.language if isinstance(examples, Split) else "en"),
        ),
        max_length=max_length or 128,
        resume=resume,
        progress=progress,
        long=LongTexts(),
    )


def inspect(*sources: Ticket | MultiTaskTicket | str | Path, task: str | None = None) -> Comparison:
    """Open masks, and show their sparsity by layer and matrix and the overlap between several.

    Args:
        *sources: Tickets, multi-task tickets (opened, folders or hub ids) or mask files.
        task: The task of multi-task tickets; by default all of them.

    Returns:
        The masks by name, with their `overlaps`, `union` and `intersection`.
    """
    from tombola.tickets.comparison import Comparison

    return Comparison.of(sources, task)


def shrink(
    ticket: Ticket | MultiTaskTicket | Path | str, output: Path | str, *, task: str | None = None
) -> Shrinkage:
    """Cut the removed heads, neurons, FFNs and layers out of a ticket's model, check the result, and measure the gain.

    Args:
        ticket: A ticket or a multi-task ticket, or its folder.
        output: The folder to write.
        task: The task of a multi-task ticket.
    """
    from tombola.tickets.multitask import as_ticket
    from tombola.tickets.saved import path_of
    from tombola.tickets.shrinking import shrink_ticket

    with as_ticket(path_of(ticket), task) as folder:
        return shrink_ticket(folder, output)


def pack(
    ticket: Ticket | MultiTaskTicket | Path | str, path: Path | str, *, task: str | None = None
) -> Packing:
    """Pack a ticket of single weights into one file: the remaining values, and one bit for every weight.

    Args:
        ticket: A ticket or a multi-task ticket, or its folder.
        path: The file to write.
        task: The task of a multi-task ticket.
    """
    from tombola.tickets.multitask import as_ticket
    from tombola.tickets.saved import path_of
    from tombola.tickets.shrinking import pack_ticket

    with as_ticket(path_of(ticket), task) as folder:
        return pack_ticket(folder, path)


def convert_pruned_heads(folder: Path | str, output: Path | str) -> ModelShape:
    """Convert a model with heads pruned by transformers 4, which transformers 5 cannot read, to a shrunk model.

    Args:
        folder: A model folder with `pruned_heads` in its config.
        output: The folder to write.

    Returns:
        The shape of each layer.
    """
    from tombola.shrink import convert_pruned_heads as convert

    return convert(folder, output)


def export(
    model: Ticket | MultiTaskTicket | Path | str,
    path: Path | str,
    *,
    int8: bool = False,
    task: str | None = None,
) -> Export:
    """Export a model to ONNX for any batch size and length, and check it in onnxruntime.

    Args:
        model: A ticket, a multi-task ticket, or the folder of one, of a shrunk model or of any model.
        path: The `.onnx` file to write; or a folder, which also gets the config and the tokenizer, so that `predict`,
            `evaluate` and `attack` can open it.
        int8: Also write a dynamically quantised version.
        task: The task of a multi-task ticket.
    """
    from tombola.tickets.exporting import export_folder
    from tombola.tickets.multitask import as_ticket, is_multi_task
    from tombola.tickets.saved import path_of

    folder = path_of(model)
    if task is not None and not is_multi_task(folder):
        raise TombolaError(f"{folder} is not a multi-task ticket: leave out --task")
    if not is_multi_task(folder):
        return export_folder(folder, path, int8=int8)
    with as_ticket(folder, task) as of_task:
        return export_folder(of_task, path, int8=int8)
