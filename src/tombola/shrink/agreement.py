"""Compare the decisions and scores of a quantised model with those of the original on texts of the task."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from tombola.evaluation.labels import label_order
from tombola.evaluation.metrics import score
from tombola.shrink.inputs import largest_difference, outputs_of, random_inputs
from tombola.shrink.runtime import open_session, run_session
from tombola.shrink.texts import Batch, TaskTexts, Texts
from tombola.tasks import kind_of
from tombola.tasks.kinds.multi_label import MultiLabelSettings

BATCH = 32
RANDOM_TEXTS = 64  # without texts of a task


@dataclass(frozen=True)
class Agreement:
    """A quantised model compared with the original.

    Args:
        max_difference: The largest difference between outputs.
        agreement: The fraction of equal decisions; None if the outputs are not decisions.
        metric: The task's headline metric, if the texts have labels to score logits on.
        original_score: The original model's score.
        score: The quantised model's score.
    """

    max_difference: float
    agreement: float | None
    metric: str | None = None
    original_score: float | None = None
    score: float | None = None


def compare_int8(model: PreTrainedModel, path: Path, texts: Texts, token_types: bool = True) -> Agreement:
    """Run the original and the quantised model on all texts, or on random tokens if there are none."""
    session, largest = open_session(path), 0.0
    split = texts.split if isinstance(texts, TaskTexts) else None
    labelled = (
        split is not None
        and split.task.kind in ("classification", "regression", "multi-label")
        and kind_of(split.task).label_logits
    )
    same: list[Tensor] = []
    logits: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    several = model.config.problem_type == "multi_label_classification"
    settings = split.task.kind_settings if split is not None else None
    least = settings.least_logit if isinstance(settings, MultiLabelSettings) else 0.0
    for batch in _batches(model, texts, token_types):
        expected, actual = outputs_of(model, batch), run_session(session, batch)
        largest = max(largest, largest_difference(expected, actual))
        attended = batch["attention_mask"].bool()
        ours, theirs = (decisions(outputs, attended, several, least) for outputs in (expected, actual))
        if ours is not None and theirs is not None:
            same.append(ours == theirs)
        if labelled:
            logits[0].append(expected["logits"].numpy() - least)
            logits[1].append(actual["logits"].numpy() - least)
    agreement = float(torch.cat(same).float().mean()) if same else None
    if split is None or not labelled:
        return Agreement(largest, agreement)
    task, order = split.task, label_order(model.config, split.task)
    original, quantised = (
        score(task, order.arrange(np.concatenate(rows)), split.labels)[task.headline].value for rows in logits
    )
    return Agreement(largest, agreement, task.headline, original, quantised)


def decisions(
    outputs: dict[str, Tensor], attended: Tensor, several: bool = False, least: float = 0.0
) -> Tensor | None:
    """Return a model's decisions: a class per text, the ends of an answer, or a word or tag per token.

    Return None for outputs that are not decisions: the number of a regression, or hidden states.

    Args:
        outputs: The model's outputs by name.
        attended: Which tokens of each text are not padding.
        several: Whether each label of a text is a separate decision.
        least: The logit above which such a label is predicted.
    """
    if "start_logits" in outputs:
        ends = [outputs[name].masked_fill(~attended, -torch.inf) for name in ("start_logits", "end_logits")]
        return torch.cat([logits.argmax(dim=-1) for logits in ends])
    if "logits" not in outputs or outputs["logits"].shape[-1] == 1:
        return None
    if several:
        return (outputs["logits"] > least).flatten()
    chosen = outputs["logits"].argmax(dim=-1)
    return chosen[attended] if chosen.dim() == 2 else chosen


def _batches(model: PreTrainedModel, texts: Texts, token_types: bool) -> list[Batch]:
    if isinstance(texts, TaskTexts):
        return texts.in_order(model, BATCH)
    return [random_inputs(model, RANDOM_TEXTS, texts.length, padded=True, token_types=token_types)]
