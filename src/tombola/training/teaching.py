"""Build the objective of a run with a teacher from the recipe's distillation settings."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from tombola.errors import TombolaError
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.objectives.distillation import HiddenStates, WithTeacher, mapped_layers
from tombola.training.loop import TrainingRun

PROJECTION = "distillation_projection"
"""The submodule name of the projection during training."""


@contextmanager
def taught(
    model: PreTrainedModel,
    run: TrainingRun,
    teacher: PreTrainedModel | None,
    *,
    projects: bool = True,
) -> Iterator[tuple[Objective, Callable[[Objective], Objective]]]:
    """Yield the objective of the settings, and the wrapper that adds the teacher as the outermost layer.

    If the teacher's hidden states have another width, the model gets a projection in this context, which is
    optimised, clipped and saved in checkpoints like the rest, and removed afterwards.

    Args:
        model: The model to train.
        run: The training, whose seed also draws the projection's initial weights.
        teacher: The teacher, if `settings.distill` is set.
        projects: Whether the model's weights, and with them a projection, are trained.
    """
    settings, distill = run.settings, run.settings.distill
    consistency = settings.augment.consistency if settings.augment is not None else 0.0
    plain = partial(
        objective_of, settings.loss, settings.adversary, settings.r_drop, distill, consistency=consistency
    )
    if distill is None:
        yield plain(), lambda objective: objective
        return
    if teacher is None:
        raise TombolaError("distill: there is no teacher: pass a model as `teacher`")
    teacher.config.pad_token_id = run.collate.pad_id
    if not distill.hidden:
        yield plain(), lambda objective: WithTeacher(objective, teacher, precision=run.precision)
        return
    student_layers, teacher_layers = mapped_layers(distill.layers, _layers(model), _layers(teacher))
    projection = _projection(model, teacher, run.seed)
    if projection is not None and not projects:
        raise TombolaError(
            f"distill.hidden: the teacher is {teacher.config.hidden_size} wide and the model "
            f"{model.config.hidden_size}, but a search trains no projection: set search.train.distill.hidden to 0"
        )
    with _projected(model, projection, student_layers):
        yield (
            plain(around_pass=partial(HiddenStates, weight=distill.hidden, student_layers=student_layers)),
            lambda objective: WithTeacher(objective, teacher, teacher_layers, run.precision),
        )


@contextmanager
def _projected(
    model: PreTrainedModel, projection: nn.Linear | None, layers: Collection[int]
) -> Iterator[None]:
    """Make the projection part of the model in this context, and project requested hidden states.

    As part of the model's output, the projection gets the gradients that data-parallel training expects.
    """
    if projection is None:
        yield
        return

    def project(module: nn.Module, arguments: Any, output: Any) -> None:
        if output.get("hidden_states") is not None:
            output["hidden_states"] = tuple(
                projection(states) if layer in layers else states
                for layer, states in enumerate(output["hidden_states"])
            )

    model.add_module(PROJECTION, projection)
    hook = model.register_forward_hook(project)
    try:
        yield
    finally:
        hook.remove()
        delattr(model, PROJECTION)


def _layers(model: PreTrainedModel) -> int:
    return int(model.config.num_hidden_layers)


def _projection(model: PreTrainedModel, teacher: PreTrainedModel, seed: int) -> nn.Linear | None:
    """Return one linear map for all layers, as in TinyBERT, or None if the widths agree."""
    student_size, teacher_size = int(model.config.hidden_size), int(teacher.config.hidden_size)
    if student_size == teacher_size:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(student_size, teacher_size).to(model.device)
