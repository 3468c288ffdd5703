"""Load models and tokenizers, with a head for a task or exactly as their folder describes them."""

import json
import logging
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import ModelError
from tombola.foundations.quiet import quiet
from tombola.models.finding import VOCABULARIES
from tombola.models.heads import head_of
from tombola.models.placing import placed
from tombola.models.safety import open_config, open_pretrained, read_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.tasks import Task

logger = logging.getLogger(__name__)

TOKEN_TYPES = "token_type_ids"
"""The input that tells the tokens of two texts apart."""


def load_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the folder's tokenizer, behind the folder's defense (`defense.json`), if any.

    A tokenizer without a vocabulary is rejected, since it would read every word as unknown.
    """
    from transformers import AutoTokenizer

    from tombola.defenses.tokenizing import as_stored

    if not any(path for pattern in VOCABULARIES for path in folder.glob(pattern)):
        raise ModelError(
            f"{folder} has no tokenizer: save one into it with tokenizer.save_pretrained(folder)"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # the tokenizers library raises a bare Exception
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
        raise ModelError(
            f"{folder}: its tokenizer cannot be opened ({reason}): save the tokenizer again"
        ) from None
    return as_stored(tokenizer, folder)


def gives_token_types(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Return whether a tokenizer gives token types."""
    return TOKEN_TYPES in tokenizer.model_input_names


def open_model(folder: Path, **options: Any) -> "PreTrainedModel":
    """Load a finished model as its folder describes it: architecture, labels and their order.

    A model that would get any new weights is rejected, except for the pooler of an encoder without a head.
    """
    architectures = read_config(folder).get("architectures")
    if not architectures:
        raise ModelError(f"{folder}: its config.json does not name an architecture")
    with quiet():
        kind = model_class(architectures[0])
        model, loading = open_pretrained(kind, folder, output_loading_info=True, **options)
    missing = set(loading["missing_keys"])
    require_whole(folder, missing if model.base_model is not model else _without_pooler(missing))
    return placed(model)


def require_whole(folder: Path, missing: set[str]) -> None:
    """Raise an error if a folder lacks weights, which transformers would replace by random ones.

    Args:
        folder: The model's folder.
        missing: The names of the weights that it lacks.
    """
    if missing:
        shown = ", ".join(sorted(missing)[:3]) + (" …" if len(missing) > 3 else "")
        raise ModelError(
            f"{folder} lacks {len(missing)} of the model's weights ({shown}): it is damaged or incomplete; copy or "
            "save it again"
        )


def _without_pooler(names: set[str]) -> set[str]:
    return {name for name in names if "pooler" not in name.split(".")}


def model_class(architecture: str) -> "type[PreTrainedModel]":
    """Return the model class that a config names."""
    import transformers

    kind = getattr(transformers, architecture, None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        raise ModelError(f"transformers {transformers.__version__} has no model {architecture!r}")
    return kind


def load_model(
    folder: Path, task: "Task", seed: int, *, new_pooler: bool = False, finetuned: bool = False
) -> "PreTrainedModel":
    """Load the model with a head for `task`. Weights that the checkpoint lacks are initialised from `seed`.

    The checkpoint's head is kept if it has an output per label. Outputs that name the task's labels are put in the
    task's order; others are taken in their own order, with a warning if they have other names. A sentence encoder's
    pooler was never trained, and `new_pooler` replaces it. With `finetuned`, a model that would get any new weights or
    has other label names is rejected.
    """
    import torch
    import transformers

    from tombola.tasks import kind_of

    kind = kind_of(task)
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model, loading = open_pretrained(
                getattr(transformers, kind.model),
                folder,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **kind.head(task),
            )
        except ValueError as error:
            raise _unsupported_task(error, folder, task) from None
    if kind.pretrained_head and loading["missing_keys"]:
        _warn_once(
            f"{folder} has no head of {kind.pretrained_head}: it gets a new one, which must be trained"
        )
    new = {name for name, *_ in loading["mismatched_keys"]}
    if new - head_of(model).keys():
        raise ModelError(f"{folder}: config.json does not fit the weights: {', '.join(sorted(new))}")
    encoder = {name for name, _ in model.named_parameters()} - head_of(model).keys()
    require_whole(folder, _without_pooler(encoder & set(loading["missing_keys"])))
    untrained = sorted(new | (head_of(model).keys() & set(loading["missing_keys"])))
    if finetuned and untrained:
        raise ModelError(
            f"{folder} has no trained head for {task.name} (it lacks {', '.join(untrained)}): use a model that is "
            "fine-tuned on the task"
        )
    if new:
        _warn_once(f"{folder} has a head of the wrong size for {task.name}: it gets a new one")
    elif task.labels is not None:
        names = _label_names(folder)
        if kind.label_logits and not untrained:
            _compare_names(names, task, folder, finetuned)
        _put_in_order(model, set(loading["missing_keys"]), names, task)
    if new_pooler:
        _renew_pooler(model, seed)
    return placed(model)


def outline(folder: Path, task: "Task") -> "PreTrainedModel":
    """Return the model with a head for `task` on the meta device: its sizes, without its weights."""
    import torch
    import transformers

    from tombola.tasks import kind_of

    kind = kind_of(task)
    config = open_config(folder)
    config.update(kind.head(task))
    try:
        with quiet(), torch.device("meta"):
            model: PreTrainedModel = getattr(transformers, kind.model).from_config(config)
    except ValueError as error:
        raise _unsupported_task(error, folder, task) from None
    return model


def _renew_pooler(model: "PreTrainedModel", seed: int) -> None:
    """Reinitialise the pooler with Xavier weights, which keep a normed state's variance through the tanh, and no bias.

    Models without a pooler, such as masked language models, are unchanged.
    """
    import torch

    from tombola.families import family_of

    family = family_of(model)
    if family.pooler is None:
        raise ModelError(f"pooler: {family.name} models have no pooler; use `pooler: own`")
    dense = next((part for name, part in model.base_model.named_modules() if name == family.pooler), None)
    if isinstance(dense, torch.nn.Linear):
        generator = torch.Generator().manual_seed(seed)
        torch.nn.init.xavier_uniform_(dense.weight, generator=generator)
        torch.nn.init.zeros_(dense.bias)


def _label_names(folder: Path) -> list[str]:
    names = json.loads((folder / "config.json").read_text()).get("id2label") or {}
    return [str(names[key]) for key in sorted(names, key=int)]


def _compare_names(names: list[str], task: "Task", folder: Path, finetuned: bool) -> None:
    """Refuse a finished model whose outputs have other names than the task's labels; warn of any other."""
    from tombola.tasks.labels import are_unnamed, outputs_by_label

    if names == task.labels or are_unnamed(names) or outputs_by_label(names, task) is not None:
        return
    if finetuned:
        raise ModelError(
            f"{folder}: the model's labels are {names}, but those of the task {task.name!r} are {task.labels}: set "
            "id2label in its config to the task's names in the order of the model's outputs"
        )
    _warn_once(
        f"The outputs of {folder}, {names}, are assumed to be the labels of {task.name}, {task.labels}, in this "
        "order: if their order differs, set id2label in its config"
    )


def _put_in_order(model: "PreTrainedModel", missing: set[str], names: list[str], task: "Task") -> None:
    """Rearrange the outputs of a trained head into the task's label order."""
    import torch

    from tombola.tasks.labels import outputs_by_label

    outputs = outputs_by_label(names, task)
    if outputs is None or len(names) != len(outputs) or outputs == [[place] for place in range(len(names))]:
        return
    rows = [place for (place,) in outputs]
    last = {name: tensor for name, tensor in head_of(model).items() if len(tensor) == len(rows)}
    if missing & last.keys():
        return
    with torch.no_grad():
        for tensor in last.values():
            tensor.copy_(tensor[rows])
    _warn_once(
        f"The outputs of the model's head, {names}, were reordered to match {task.name}, {task.labels}"
    )


def _unsupported_task(error: ValueError, folder: Path, task: "Task") -> Exception:
    if not str(error).startswith("Unrecognized configuration class"):
        return error
    model_type = json.loads((folder / "config.json").read_text()).get("model_type")
    return ModelError(
        f"{folder}: transformers has no {task.kind} model of the type {model_type!r}, which the task {task.name!r} "
        "needs: use another model"
    )


@lru_cache(maxsize=128)
def _warn_once(text: str) -> None:
    """Log a warning once, however many stages load the same model."""
    logger.warning("%s", text)
