"""Evaluators of whole texts: one label, a number, or any number of labels per text."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from tombola.errors import DataError
from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, Prediction, evaluators
from tombola.evaluation.labels import LabelOrder, label_order, order_doubts
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import predict
from tombola.evaluation.scores import Score
from tombola.tasks import Split, TextWindows
from tombola.tasks.kinds import settings_of
from tombola.tasks.kinds.multi_label import MultiLabelSettings
from tombola.tasks.metrics import merit, metrics
from tombola.tasks.task import DEFINITIONS

TINY = 1e-30  # lower bound of a probability before its logarithm
EPSILON = 1e-15  # minimum distance of a probability from 1


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities along the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: np.ndarray = shifted / shifted.sum(axis=-1, keepdims=True)
    return shares


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return the independent probability of each label."""
    chances: np.ndarray = 1 / (1 + np.exp(-logits.astype(np.float64)))
    return chances


Means = Callable[[TextWindows, np.ndarray], np.ndarray]
"""Computes the outputs for whole texts from those of their windows."""


def mean_classes(windows: TextWindows, logits: np.ndarray) -> np.ndarray:
    """Return the logarithms of the windows' mean probabilities, which softmax maps back."""
    logarithms: np.ndarray = np.log(np.maximum(windows.mean(softmax(logits.astype(np.float64))), TINY))
    return logarithms


def mean_labels(windows: TextWindows, logits: np.ndarray) -> np.ndarray:
    """Return the logits of each label's mean probability."""
    chances = np.clip(windows.mean(sigmoid(logits)), TINY, 1 - EPSILON)
    odds: np.ndarray = np.log(chances / (1 - chances))
    return odds


def ordered_logits(inputs: Inputs, means: Means = mean_classes) -> tuple[np.ndarray, LabelOrder]:
    """Return the logits of all examples in the task's label order, with information about that order.

    Args:
        inputs: The model and the data.
        means: Combines the rows of a text's windows into one.
    """
    order = label_order(inputs.model.config, inputs.split.task)
    logits = predict(
        inputs.model, inputs.data, inputs.collate, precision=inputs.precision, progress=inputs.progress
    )
    if isinstance(inputs.data, TextWindows):
        logits = means(inputs.data, logits).astype(np.float32)
    return order.arrange(logits), order


@evaluators("classes")
class Classes(Evaluator):
    """One label per text: the one with the largest logit."""

    joins_windows = True

    def logits(self, inputs: Inputs) -> tuple[np.ndarray, LabelOrder]:
        """Return a logit for every label of the task, in its order."""
        return ordered_logits(inputs)

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the logits, overall and in the task's groups."""
        split, (logits, order) = inputs.split, self.logits(inputs)
        scores = score(split.task, logits, split.labels)
        of_groups, unscored = group_scores(split, logits)
        doubts = [] if order.named else order_doubts(split.task, logits, np.asarray(split.labels))
        notes = order.notes + doubts + unscored + _missing_labels(split)
        return Evaluation(scores | of_groups, logits, notes)

    def constant(self, split: Split) -> float | None:
        """Return the score of the best single class for all."""
        answers = np.eye(len(split.task.labels or ()))
        return _best_constant(split, [np.tile(answer, (len(split), 1)) for answer in answers])

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the label and the probabilities of all labels."""
        names = inputs.split.task.labels or []
        rows = softmax(self.logits(inputs)[0])
        return [
            Prediction(names[int(row.argmax())], dict(zip(names, row.tolist(), strict=True))) for row in rows
        ]


@evaluators("numbers")
class Numbers(Evaluator):
    """A number per text."""

    joins_windows = True

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the outputs."""
        outputs, order = ordered_logits(inputs, TextWindows.mean)
        return Evaluation(score(inputs.split.task, outputs, inputs.split.labels), outputs, order.notes)

    def constant(self, split: Split) -> float | None:
        """Return the score of the mean for all."""
        return _best_constant(split, [np.full((len(split), 1), np.mean(split.labels))])

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the number for each text."""
        return [Prediction(float(value)) for (value,) in ordered_logits(inputs, TextWindows.mean)[0]]


@evaluators("label sets")
class LabelSets(Evaluator):
    """Any number of labels per text: those whose probability exceeds the task's threshold."""

    joins_windows = True

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the sets; the stored predictions are the plain logits."""
        split, (logits, order) = inputs.split, ordered_logits(inputs, mean_labels)
        shifted = logits - settings_of(split.task, MultiLabelSettings).least_logit
        return Evaluation(score(split.task, shifted, split.labels), logits, order.notes)

    def constant(self, split: Split) -> float | None:
        """Return the score of the best constant set: the most frequent label, the two most frequent, and so on."""
        ranks = np.argsort(np.argsort(-np.sum(split.labels, axis=0), kind="stable"))
        sets = [np.where(ranks < size, 1.0, -1.0) for size in range(len(ranks) + 1)]
        return _best_constant(split, [np.tile(labels, (len(split), 1)) for labels in sets])

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the labels, and the probability of each."""
        task = inputs.split.task
        names, threshold = task.labels or [], settings_of(task, MultiLabelSettings).threshold
        predictions = []
        for row in sigmoid(ordered_logits(inputs, mean_labels)[0]):
            by_name = dict(zip(names, row.tolist(), strict=True))
            predictions.append(
                Prediction(tuple(name for name in names if by_name[name] > threshold), by_name)
            )
        return predictions


def _best_constant(split: Split, guesses: list[np.ndarray]) -> float:
    name, labels = split.task.headline, np.asarray(split.labels)
    values = (metrics[name](guess, labels).value for guess in guesses)
    return max(values, key=lambda value: merit(value, name))


def group_scores(split: Split, logits: np.ndarray) -> tuple[dict[str, Score], list[str]]:
    """Return the headline metric in each of the task's groups present in the data, as `accuracy/lexical_overlap`.

    A value that occurs in several breakdowns is named with its column, as `accuracy/sarcasm=yes`. Notes name the groups
    in which the metric is not defined, such as the area under the curve where all examples have one label.
    """
    task, labels = split.task, np.asarray(split.labels)
    by_group: dict[str, Score] = {}
    notes = []
    columns = {"label": [(task.labels or ())[label] for label in split.labels], **split.columns}
    breakdowns = {
        "+".join(group): [
            "/".join(map(str, row)) for row in zip(*(columns[name] for name in group), strict=True)
        ]
        for group in task.grouped
        if set(group) <= set(columns)
    }
    shared = Counter(value for values in breakdowns.values() for value in set(values))
    for name, values in breakdowns.items():
        for value in dict.fromkeys(values):
            members = np.array([group == value for group in values])
            place = value if shared[value] == 1 else f"{name}={value}"
            try:
                by_group[f"{task.headline}/{place}"] = metrics[task.headline](
                    logits[members], labels[members]
                )
            except DataError as error:
                notes.append(f"{task.name}/{split.name} has no {task.headline}/{place}: {error}")
    return by_group, notes


def _missing_labels(split: Split) -> list[str]:
    """Note labels of a user's task that never occur. Published sets that lack one, such as Symmetric, are exempt."""
    task, present = split.task, set(split.labels)
    missing = [name for number, name in enumerate(task.labels or ()) if number not in present]
    if not missing or task.directory == DEFINITIONS:
        return []
    return [
        f"No example of {task.name}/{split.name} ({len(split)}) has the label {' or '.join(map(repr, missing))}: its "
        "scores say nothing about it."
    ]
