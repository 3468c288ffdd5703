"""Store unstructured tickets compactly: the kept values of each matrix, and a bitmap of their positions.

At 70 % sparsity a matrix of 32-bit weights takes 0.3 · 32 + 1 bits per weight, 3.0 times less than a dense one.
"""

import json
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor
from transformers import PreTrainedModel

from tombola.errors import DamagedArtefact
from tombola.foundations.checksums import require_place
from tombola.foundations.headed_files import read_headed, write_headed
from tombola.foundations.paths import temporary_beside
from tombola.masks import Mask, bits
from tombola.masks.layout import state_name
from tombola.models.loading import model_class
from tombola.shrink.folders import config_from


class PackedHeader(BaseModel):
    """The header of a packed file: the model to build, and which of its tensors are packed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["packed"] = "packed"
    version: Literal[1] = 1
    architecture: str
    config: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    digest: str = ""
    """Checksum of the header and all tensors."""


def pack(model: PreTrainedModel, mask: Mask, path: str | PathLike[str]) -> None:
    """Write the masked model as one safetensors file: the kept values and one bit per weight.

    A tensor is stored whole if its bitmap would take more space than the removed weights.

    Args:
        model: The model.
        mask: A mask that fits it.
        path: The file to write.
    """
    require_place(Path(path))
    kept = {state_name(model, name): bools for name, bools in mask.tensors(model).items()}
    stored: dict[str, Tensor] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, tensor in model.state_dict().items():
        if name in model.all_tied_weights_keys:
            continue
        tensor = tensor.detach()
        if name in kept and _saves_space(tensor, kept[name]):
            shapes[name] = tuple(tensor.shape)
            stored[f"{name}.values"] = tensor[kept[name]]
            stored[f"{name}.bits"] = torch.from_numpy(bits.pack(kept[name]))
        elif name in kept:
            stored[name] = tensor.masked_fill(~kept[name], 0.0)
        else:
            stored[name] = tensor.contiguous()
    config = json.loads(model.config.to_json_string())
    config["dtype"] = str(model.dtype).removeprefix("torch.")  # the config may have that of its file
    header = PackedHeader(architecture=type(model).__name__, config=config, shapes=shapes)
    header = header.model_copy(update={"digest": _digest(header, stored)})
    draft = temporary_beside(Path(path))
    try:
        write_headed(draft, "packed model", stored, header.model_dump_json(), {"format": "pt"}, "pt")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def unpack(path: str | PathLike[str]) -> PreTrainedModel:
    """Load the model that `pack` wrote, bit for bit; removed weights are zero.

    Args:
        path: The file.
    """
    stored, text, _ = read_headed(path, "packed model", "pt")
    try:
        header = PackedHeader.model_validate_json(text)
    except ValidationError as error:
        raise DamagedArtefact(
            f"{path} has a malformed header ({error.errors()[0]['msg']}): copy or create it again."
        ) from None
    if _digest(header, stored) != header.digest:
        raise DamagedArtefact(f"{path} does not match its checksum: it is damaged. Copy or create it again.")
    state = {name: tensor for name, tensor in stored.items() if not _is_packed(name, header)}
    for name, shape in header.shapes.items():
        state[name] = _unpacked(path, name, stored, shape)
    return _build_model(header, state)


def _digest(header: PackedHeader, stored: dict[str, Tensor]) -> str:
    digest = blake2b(header.model_dump_json(exclude={"digest"}).encode(), digest_size=16)
    for name, tensor in sorted(stored.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _saves_space(tensor: Tensor, kept: Tensor) -> bool:
    removed = tensor.numel() - int(kept.sum())
    return removed * tensor.element_size() > tensor.numel() / 8


def _is_packed(name: str, header: PackedHeader) -> bool:
    return name.removesuffix(".values") in header.shapes or name.removesuffix(".bits") in header.shapes


def _unpacked(
    path: str | PathLike[str], name: str, stored: dict[str, Tensor], shape: tuple[int, ...]
) -> Tensor:
    values, bitmap = stored.get(f"{name}.values"), stored.get(f"{name}.bits")
    count = torch.Size(shape).numel()
    if (
        values is None
        or bitmap is None
        or bitmap.dtype != torch.uint8
        or bitmap.numel() != -(-count // 8)
        or bits.population(bitmap.numpy()) != values.numel()
    ):
        raise DamagedArtefact(
            f"{path}: the values of {name} do not fit their bitmap: copy or create the file again."
        )
    tensor = torch.zeros(shape, dtype=values.dtype)
    tensor[bits.unpack(bitmap.numpy(), shape)] = values
    return tensor


def _build_model(header: PackedHeader, state: dict[str, Tensor]) -> PreTrainedModel:
    kind = model_class(header.architecture)
    return kind.from_pretrained(None, config=config_from(header.config), state_dict=state)
