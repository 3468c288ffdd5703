"""Evaluate a model on a split in one call: tokenise, predict, score; or predict texts without labels."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tombola.evaluation.evaluators import Evaluation, Inputs, Prediction, evaluators
from tombola.evaluation.long_texts import LongTexts
from tombola.foundations.hardware import Precision
from tombola.store.stage import Progress
from tombola.tasks import Split, collate_of, fitting_length, kind_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Evaluation", "Prediction", "evaluate_split", "predict_split"]


def evaluate_split(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
    long: LongTexts | None = None,
) -> Evaluation:
    """Score the model on the split. Inputs are truncated at `max_length` or the model's last position.

    `progress` is called after each batch with the number of finished rows and the total. `long` counts longer texts,
    and determines whether they are read in windows instead.
    """
    evaluator = evaluators[kind_of(split.task).evaluator]()
    return evaluator.evaluate(_inputs(model, tokenizer, split, max_length, precision, progress, long))


def constant_score(split: Split) -> float | None:
    """Return the headline score of the best constant prediction: one class for all, or one number.

    Return None for questions and passages, which have no constant answer.
    """
    return evaluators[kind_of(split.task).evaluator]().constant(split)


def predict_split(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
    long: LongTexts | None = None,
) -> list[Prediction]:
    """Predict a split, ignoring its labels."""
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
    """Return a callback that accumulates the rows of batches."""
    if progress is None:
        return None
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        progress(done, rows, {})

    return count
