"""The identity of the model a mask belongs to: its geometry and a fingerprint of its layers' weights."""

import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch
from pydantic import BaseModel, ConfigDict

from tombola.families import family_of
from tombola.masks.layout import Layout

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Base(BaseModel):
    """The identity of a base model. The fingerprint is None for a model on the meta device, which has no values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model_type: str
    geometry: dict[str, int]
    fingerprint: str | None = None

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in self.geometry.items())
        return f"{self.model_type} {self.fingerprint or 'without fingerprint'} ({sizes})"


def geometry(model: "PreTrainedModel") -> Base:
    """Return the base of a model from its sizes alone, without a fingerprint.

    Args:
        model: A model of a known family.
    """
    family = family_of(model)
    first = Layout.of(model).layers()[0]
    return Base(
        model_type=model.config.model_type,
        geometry={
            "layers": len(family.layers_of(model)),
            "hidden": first["query"].inputs,
            "heads": family.heads_in(model.config),
            "kv_heads": family.kv_heads_in(model.config),
            "head_dim": family.head_dim_in(model.config),
            "ffn": first["up"].outputs,
        },
    )


def fingerprint(model: "PreTrainedModel") -> Base:
    """Return the base of a model, with a hash of its family, its geometry and its layers' weights.

    The hash skips the embeddings, the pooler and the head, so that the classifier, the masked language model and the
    question-answering version of one pre-trained model agree. Values are hashed as float32.

    Args:
        model: A model of a known family.
    """
    base = geometry(model)
    if any(parameter.is_meta for parameter in model.base_model.parameters()):
        return base
    layout = Layout.of(model)
    names = fingerprinted(layout)
    parameters = dict(model.base_model.named_parameters())
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        digests = threads.map(lambda name: digest_of(parameters[name]), names)
        return with_digests(base, layout, digests)


def fingerprinted(layout: Layout) -> list[str]:
    """Return the names of the tensors that a fingerprint covers, in hashing order."""
    return list(dict.fromkeys(matrix.tensor for matrix in layout.matrices if matrix.layer is not None))


def with_digests(base: Base, layout: Layout, digests: Iterable[bytes]) -> Base:
    """Return the base with a fingerprint built from the digests of its `fingerprinted` tensors."""
    total = hashlib.sha256(json.dumps([layout.family, base.geometry, fingerprinted(layout)]).encode())
    for digest in digests:
        total.update(digest)
    return base.model_copy(update={"fingerprint": total.hexdigest()[:32]})


def digest_of(parameter: torch.Tensor) -> bytes:
    """Return a hash of a tensor's values."""
    values = parameter.detach().to("cpu", torch.float32).contiguous().numpy()
    return hashlib.sha256(values.data).digest()
