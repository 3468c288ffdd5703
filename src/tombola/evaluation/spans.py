"""From the logits of windows to one answer per question, as the reference scripts of BERT choose it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.evaluation.predict import BATCH_TOKENS, each_batch, require_finite
from tombola.foundations.hardware import Precision
from tombola.tasks import Collate, Windows

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

N_BEST = 20  # starts and ends that are tried in each window
LONGEST_ANSWER = 30  # tokens


@dataclass
class Best:
    """The best answer so far to each question, and how well its windows speak for there being none."""

    questions: int
    spans: np.ndarray = field(init=False)
    scores: np.ndarray = field(init=False)
    silence: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.spans = np.zeros((self.questions, 2), dtype=np.int32)
        self.scores = np.full(self.questions, -np.inf)
        self.silence = np.full(self.questions, np.inf)

    def take(self, question: int, start: np.ndarray, end: np.ndarray, spans: np.ndarray) -> None:
        """Look at one window: its logits and its tokens' characters."""
        first, last, score = best_pair(start, end, spans[:, 0] >= 0)
        self.silence[question] = min(self.silence[question], start[0] + end[0])
        if score > self.scores[question]:
            self.scores[question] = score
            self.spans[question] = spans[first, 0], spans[last, 1]


def best_pair(start: np.ndarray, end: np.ndarray, inside: np.ndarray) -> tuple[int, int, float]:
    """The first and last token with the highest sum of logits, and that sum; −∞ if no pair is an answer.

    Of the tokens `inside` the context the 20 best starts and ends are tried, with at most 30 tokens between.
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
    batch_tokens: int = BATCH_TOKENS,
    precision: Precision = "fp32",
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Each question's answer as characters of its context, (questions, 2) from first to after the last.

    (0, 0) is no answer: where `unanswerable` questions occur and all windows speak more for that than one
    speaks for an answer (a threshold of 0), or where no pair of tokens makes one.
    """
    best = Best(int(windows.question.max()) + 1)

    def take(members: np.ndarray, batch: dict[str, Any], logits: "torch.Tensor") -> None:
        for member, (start, end) in zip(
            members.tolist(), require_finite(logits).double().cpu().numpy(), strict=True
        ):
            tokens = slice(windows.offsets[member], windows.offsets[member + 1])
            length = tokens.stop - tokens.start
            best.take(int(windows.question[member]), start[:length], end[:length], windows.spans[tokens])

    each_batch(
        model, windows, collate, take, batch_tokens=batch_tokens, precision=precision, progress=progress
    )
    if unanswerable:
        best.spans[best.silence > best.scores] = 0
    return best.spans
