"""One encoder with a head for each task, in memory and on disk.

On disk it is the encoder's folder, which `AutoModel` loads, with `tasks/NAME/` beside the weights: the config of the
task's classifier, its head, and the task's mask, if any.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tombola.errors import ModelError, UnknownName
from tombola.foundations.paths import path_part
from tombola.foundations.quiet import quiet
from tombola.masks import MASK, Mask
from tombola.models.heads import head_of
from tombola.models.loading import require_whole
from tombola.models.safety import open_config, open_pretrained
from tombola.tasks import set_padding

TASKS = "tasks"
HEAD = "head.safetensors"


class SharedModel(nn.Module):
    """Classifiers and regressors that share the encoder of the first. `task` selects the active one."""

    def __init__(self, models: Sequence[PreTrainedModel]) -> None:
        super().__init__()
        self.models: Sequence[PreTrainedModel]
        for model in models[1:]:
            setattr(model, model.base_model_prefix, models[0].base_model)
        self.models = nn.ModuleList(models)  # type: ignore[assignment]
        self.task = 0

    @property
    def config(self) -> PreTrainedConfig:
        """The config of the first task's model; all tasks agree in everything but the labels."""
        return self.models[0].config

    @property
    def base_model(self) -> PreTrainedModel:
        """The shared encoder."""
        return self.models[0].base_model

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings, which adversarial objectives perturb."""
        embeddings: nn.Module = self.models[0].get_input_embeddings()
        return embeddings

    def forward(self, **inputs: Any) -> Any:
        """Return the output of the current task's head."""
        return self.models[self.task](**inputs)

    def pad_with(self, token: int) -> None:
        """Set the padding token of every task's model."""
        for model in self.models:
            set_padding(model.config, token)


def save_shared(
    model: SharedModel,
    names: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    masks: Sequence[Mask] | None = None,
) -> None:
    """Write the encoder once, and each task's head, config and mask into a folder named after the task."""
    with quiet():
        for index, (name, member) in enumerate(zip(names, model.models, strict=True)):
            place = folder / TASKS / path_part(name)
            place.mkdir(parents=True)
            member.config.save_pretrained(place)
            head = {key: tensor.detach().cpu().contiguous() for key, tensor in head_of(member).items()}
            save_file(head, place / HEAD)
            if masks is not None:
                masks[index].save(place / MASK)
        model.base_model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def task_folder(folder: Path, name: str) -> Path:
    """Return the folder of a task's own part."""
    place = folder / TASKS / path_part(name)
    if not (place / HEAD).is_file():
        raise UnknownName("task", name, sorted(path.parent.name for path in folder.glob(f"{TASKS}/*/{HEAD}")))
    return place


def open_task(folder: Path, name: str) -> PreTrainedModel:
    """Load one task's model from the shared one, as an ordinary classifier under the task's mask."""
    place = task_folder(folder, name)
    with quiet(), torch.random.fork_rng(devices=[]):
        config = open_config(place)
        model, loading = open_pretrained(
            AutoModelForSequenceClassification,
            folder,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
        )
    require_whole(folder, set(loading["missing_keys"]) - head_of(model).keys())
    try:
        head = load_file(place / HEAD)
        if head.keys() != head_of(model).keys():  # the rest would stay random
            raise ModelError(f"{place / HEAD} does not match its config.json: copy or create it again")
        model.load_state_dict(head, strict=False)
    except (SafetensorError, OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise ModelError(f"{place / HEAD} is damaged ({reason}): copy or create it again") from None
    if (place / MASK).is_file():
        Mask.load(place / MASK).apply(model)
    return model
