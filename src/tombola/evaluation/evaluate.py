"""A model on a split in one call: tokenise, predict, score; or only predict, on texts without labels."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.evaluation.evaluators import Evaluation, Inputs, Prediction, evaluators
from tombola.evaluation.long_texts import LongTexts
from tombola.foundations.hardware import Precision
from tombola.store.stage import Progress
from tombola.tasks import Split, Task, collate_of, fitting_length, kind_of, unlabelled
from tombola.tasks.kinds import Row

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Evaluation", "Prediction", "evaluate_split", "predict_split", "predict_texts"]


def evaluate_split(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
    long: LongTexts | None = None,
) -> Evaluation:
    """Score the model on the split. Inputs are cut at `max_length` or at the model's last position.

    `progress` is called after each batch with the rows done and the rows in all. `long` counts the texts that are
    longer, and says whether they are read in windows instead.
    """
    evaluator = evaluators[kind_of(split.task).evaluator]()
    return evaluator.evaluate(_inputs(model, tokenizer, split, max_length, precision, progress, long))


def constant_score(split: Split) -> float | None:
    """The headline score of the best constant prediction: one class for all, or one number.

    None for questions and passages, which have no constant answer.
    """
    return evaluators[kind_of(split.task).evaluator]().constant(split)


def predict_texts(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: Path | str | Iterable[Row],
    task: Task,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
) -> list[Prediction]:
    """What a model says of texts without labels.

    Args:
        model: A model with a head for the task.
        tokenizer: Its tokenizer.
        rows: A file in one of the task's layouts, its labels not needed; or texts, pairs of texts, mappings of the
            task's text columns, or lists of words for token classification.
        task: The task that the model has learned.
        max_length: Tokens that inputs are cut at.
        precision: Of the computation.
        progress: Called after each batch with the rows done and the rows in all.

    Returns:
        A label with its probabilities for each row, in order.
    """
    return predict_split(model, tokenizer, unlabelled(task, rows), max_length, precision, progress)


def predict_split(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
    long: LongTexts | None = None,
) -> list[Prediction]:
    """The same for a split, whose labels are not looked at."""
    evaluator = evaluators[kind_of(split.task).evaluator]()
    return evaluator.label(_inputs(model, tokenizer, split, max_length, precision, progress, long))


def _inputs(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int,
    precision: Precision,
    progress: Progress | None,
    long: LongTexts | None,
) -> Inputs:
    limit = fitting_length(max_length, model.config)
    data = kind_of(split.task).encode_scored(split, tokenizer, limit)
    if long is not None:
        data = long.take(split, tokenizer, data, limit)
    count = _counter(progress, len(data))
    return Inputs(model, split, data, collate_of(split.task, tokenizer), precision, count)


def _counter(progress: Progress | None, rows: int) -> Callable[[int], None] | None:
    """Adds up the rows of batches."""
    if progress is None:
        return None
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        progress(done, rows, {})

    return count
