"""Choose the answer that a decoder finds most likely, for multiple-choice questions and verbalised labels."""

import numpy as np

from tombola.evaluation.classes import Classes, softmax
from tombola.evaluation.documents import token_losses
from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, Prediction, evaluators
from tombola.evaluation.labels import LabelOrder
from tombola.evaluation.metrics import score
from tombola.tasks import Split
from tombola.tasks.continuations import Continuations

MISSING = -1e30
"""The log-likelihood of a missing choice, if other examples have more choices."""


def choice_likelihoods(inputs: Inputs) -> np.ndarray:
    """Return the log-likelihood of each example's continuations, (examples, choices); `MISSING` if there are fewer."""
    data = inputs.data
    assert isinstance(data, Continuations)
    losses = token_losses(
        inputs.model, data, inputs.collate, precision=inputs.precision, progress=inputs.progress
    )
    likelihoods = np.full((len(inputs.split), int(data.choices.max()) + 1), MISSING)
    likelihoods[data.examples, data.choices] = -np.add.reduceat(losses, data.offsets[:-1])
    return likelihoods


@evaluators("choices")
class Choices(Evaluator):
    """The likelihoods of each question's answers, and the answers' lengths in characters."""

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the choices; predictions are (examples, choices, 2): log-likelihood and length."""
        split, likelihoods = inputs.split, choice_likelihoods(inputs)
        lengths = np.ones_like(likelihoods)
        for example, (_, *answers) in enumerate(split.texts):
            lengths[example, : len(answers)] = [len(answer) for answer in answers]
        table = np.stack([likelihoods, lengths], axis=-1)
        return Evaluation(score(split.task, table, split.labels), table)

    def constant(self, split: Split) -> float | None:
        """Return the accuracy of always choosing the best position."""
        counts = np.bincount(np.asarray(split.labels))
        return float(counts.max() / len(split))

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the most likely answer, and the probability of each."""
        predictions = []
        for row, (_, *answers) in zip(choice_likelihoods(inputs), inputs.split.texts, strict=True):
            shares = softmax(row[: len(answers)])
            predictions.append(
                Prediction(answers[int(shares.argmax())], dict(zip(answers, shares.tolist(), strict=True)))
            )
        return predictions


@evaluators("label likelihoods")
class LabelLikelihoods(Classes):
    """One label per text: the one whose answer is most likely after the prompt. Likelihoods serve as logits."""

    def logits(self, inputs: Inputs) -> tuple[np.ndarray, LabelOrder]:
        """Return the log-likelihoods of the labels' answers, in the task's order."""
        likelihoods = choice_likelihoods(inputs)
        return likelihoods, LabelOrder([[place] for place in range(likelihoods.shape[1])], True, [])
