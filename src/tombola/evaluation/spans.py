"""Choose one answer per question from the logits of its windows, like BERT's reference scripts."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, Prediction, evaluators
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import BatchOptions, each_batch, require_finite
from tombola.tasks import Collate, Windows

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

N_BEST = 20  # starts and ends tried in each window
LONGEST_ANSWER = 30  # tokens


@dataclass
class Best:
    """The best answer so far to each question, and the score of no answer."""

    questions: int
    spans: np.ndarray = field(init=False)
    scores: np.ndarray = field(init=False)
    silence: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.spans = np.zeros((self.questions, 2), dtype=np.int32)
        self.scores = np.full(self.questions, -np.inf)
        self.silence = np.full(self.questions, np.inf)

    def take(self, question: int, start: np.ndarray, end: np.ndarray, spans: np.ndarray) -> None:
        """Add one window: its logits and its tokens' characters."""
        first, last, score = best_pair(start, end, spans[:, 0] >= 0)
        self.silence[question] = min(self.silence[question], start[0] + end[0])
        if score > self.scores[question]:
            self.scores[question] = score
            self.spans[question] = spans[first, 0], spans[last, 1]


def best_pair(start: np.ndarray, end: np.ndarray, inside: np.ndarray) -> tuple[int, int, float]:
    """Return the first and last token with the highest sum of logits, and that sum; −∞ if no pair is an answer.

    Tries the 20 best starts and ends among the tokens `inside` the context, for answers of at most 30 tokens.
    """
    context = np.flatnonzero(inside)
    starts = context[np.argsort(-start[context], kind="stable")[:N_BEST]]
    ends = context[np.argsort(-end[context], kind="stable")[:N_BEST]]
    length = ends[None, :] - starts[:, None] + 1
    sums = start[starts][:, None] + end[ends][None, :]
    sums = np.where((length >= 1) & (length <= LONGEST_ANSWER), sums, -np.inf)
    row, column = np.unravel_index(sums.argmax(), sums.shape)
    return int(starts[row]), int(ends[column]), float(sums[row, column])


def predict_spans(
    model: "PreTrainedModel",
    windows: Windows,
    collate: Collate,
    *,
    unanswerable: bool = False,
    **options: Unpack[BatchOptions],
) -> np.ndarray:
    """Return each question's answer as a character span of its context, (questions, 2), end exclusive.

    (0, 0) means no answer: if `unanswerable` questions occur and every window scores no answer above the best
    answer (a threshold of 0), or if no pair of tokens makes an answer.
    """
    best = Best(int(windows.question.max()) + 1)

    def take(members: np.ndarray, batch: dict[str, Any], logits: "torch.Tensor") -> None:
        for member, (start, end) in zip(
            members.tolist(), require_finite(logits).double().cpu().numpy(), strict=True
        ):
            tokens = slice(windows.offsets[member], windows.offsets[member + 1])
            length = tokens.stop - tokens.start
            best.take(int(windows.question[member]), start[:length], end[:length], windows.spans[tokens])

    each_batch(model, windows, collate, take, **options)
    if unanswerable:
        best.spans[best.silence > best.scores] = 0
    return best.spans


@evaluators("spans")
class Spans(Evaluator):
    """The character span of each question's answer in its context."""

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the texts of the answers."""
        spans = self._spans(inputs)
        return Evaluation(score(inputs.split.task, _texts(inputs, spans), inputs.split.labels), spans)

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the answer texts; empty if there is no answer."""
        return [Prediction(text) for text in _texts(inputs, self._spans(inputs))]

    @staticmethod
    def _spans(inputs: Inputs) -> np.ndarray:
        assert isinstance(inputs.data, Windows)
        return predict_spans(
            inputs.model,
            inputs.data,
            inputs.collate,
            unanswerable=inputs.split.task.unanswerable,
            precision=inputs.precision,
            progress=inputs.progress,
        )


def _texts(inputs: Inputs, spans: np.ndarray) -> list[str]:
    """Return the texts of the answers without the blank before them, which many tokenizers count as theirs."""
    pairs = zip(inputs.split.texts, spans.tolist(), strict=True)
    return [context[first:end].strip() for (_, context), (first, end) in pairs]
