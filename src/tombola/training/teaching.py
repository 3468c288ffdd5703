"""From what a recipe says about distillation to the objective of a run with its teacher."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.objectives.distillation import HiddenStates, WithTeacher, mapped_layers
from tombola.training.settings import TrainSettings

PROJECTION = "distillation_projection"
"""The name of the projection among the model's parts while it is trained."""


@contextmanager
def taught(
    model: PreTrainedModel,
    settings: TrainSettings,
    teacher: PreTrainedModel | None,
    *,
    seed: int,
    precision: Precision,
    pad_id: int,
    projects: bool = True,
) -> Iterator[tuple[Objective, Callable[[Objective], Objective]]]:
    """The objective of the settings, and what puts the teacher around it: the outermost of all.

    Where hidden states of another width are learned, the model has a projection inside, so that it is optimised,
    clipped and saved in checkpoints like the rest; it is gone afterwards.

    Args:
        model: What is trained.
        settings: How.
        teacher: The model to learn from, where `settings.distill` is set.
        seed: What the projection's first weights depend on.
        precision: The arithmetic of the teacher's passes.
        pad_id: The padding token of the batches, for a teacher that names none.
        projects: Whether the model's weights are trained, and a projection with them.
    """
    distill = settings.distill
    consistency = settings.augment.consistency if settings.augment is not None else 0.0
    plain = partial(
        objective_of, settings.loss, settings.adversary, settings.r_drop, distill, consistency=consistency
    )
    if distill is None:
        yield plain(), lambda objective: objective
        return
    if teacher is None:
        raise TombolaError("distill: there is no teacher to learn from: give the model as `teacher`")
    if teacher.config.pad_token_id is None:
        teacher.config.pad_token_id = pad_id
    if not distill.hidden:
        yield plain(), lambda objective: WithTeacher(objective, teacher, precision=precision)
        return
    own, theirs = mapped_layers(distill.layers, _layers(model), _layers(teacher))
    projection = _projection(model, teacher, seed)
    if projection is not None and not projects:
        raise TombolaError(
            f"distill.hidden: the teacher is {teacher.config.hidden_size} wide and the model "
            f"{model.config.hidden_size}, and a search trains no projection: set search.train.distill.hidden to 0"
        )
    with _projected(model, projection, own):
        yield (
            plain(around_pass=partial(HiddenStates, weight=distill.hidden, student_layers=own)),
            lambda objective: WithTeacher(objective, teacher, theirs, precision),
        )


@contextmanager
def _projected(
    model: PreTrainedModel, projection: nn.Linear | None, layers: Collection[int]
) -> Iterator[None]:
    """Inside, the projection is a part of the model, and hidden states that it is asked for come out projected.

    As an output of the model, the projection takes part in what parallel processes expect of its gradients.
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
    """One linear map for all layers, as in TinyBERT, where the widths differ."""
    own, theirs = int(model.config.hidden_size), int(teacher.config.hidden_size)
    if own == theirs:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(own, theirs).to(model.device)
