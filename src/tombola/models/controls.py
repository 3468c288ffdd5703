"""Controls: pre-trained weights with some property destroyed, to see whether it mattered.

Each answers one question about a ticket. (BERT-Tickets, section 4 and appendix)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.errors import ModelError
from tombola.foundations.choices import Choice, Choices
from tombola.foundations.lazy import lazy_module

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

    from tombola.masks import Units
else:
    torch = lazy_module("torch")

SINGLE_LAYER = (
    "control: this model has a single layer, or uses one for all (ALBERT), so layers cannot be shuffled: use across: "
    "matrices"
)

controls: Choices[type[Control]] = Choices("control")


class Control(Choice):
    """A property to destroy in a model before training."""

    choices: ClassVar = controls

    kind: str

    def check(self, config: PreTrainedConfig) -> None:
        """Raise if models of this config lack what it destroys."""
        return None

    @abstractmethod
    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Change the model's weights in place, depending only on `seed`. Called without gradients."""
        ...


def apply_control(control: Control, model: PreTrainedModel, seed: int) -> None:
    """Change the model's weights in place, depending only on `seed`."""
    with torch.no_grad():
        control.apply(model, seed)


@controls.register
class Reinitialise(Control):
    """θ0', everything pre-trained reinitialised: does the mask matter alone, or only with the pre-trained weights?

    That is the encoder, and the head of a language model; the head of another task is unchanged.
    """

    kind: Literal["reinitialise"] = "reinitialise"

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Load a freshly initialised encoder of the same config, and renew the head of a language model."""
        from transformers import AutoModel

        from tombola.models.heads import renew_head

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            fresh = AutoModel.from_config(model.config).state_dict()
            current = model.base_model.state_dict()
            if not current.keys() <= fresh.keys():  # a NomicBERT has a pooler below a classifier alone
                fresh = type(model)._from_config(model.config).base_model.state_dict()
        if any(name not in fresh or fresh[name].shape != weight.shape for name, weight in current.items()):
            raise ModelError(
                "control: a shrunk model whose layers have different sizes cannot be reinitialised: use the model that "
                "it was cut from, or one with equal layers"
            )
        model.base_model.load_state_dict({name: fresh[name] for name in current})
        if model.get_output_embeddings() is not None:
            renew_head(model, seed)


@controls.register
class Shuffle(Control):
    """θ0'', the pre-trained weights shuffled: does their position matter, or only their distribution?"""

    kind: Literal["shuffle"] = "shuffle"
    across: Literal["matrices", "layers", "whole_layers"] = Field(
        "matrices",
        description="matrices: permute the entries of each matrix; layers: permute the prunable matrices of layers (as "
        "released); whole_layers: permute layers with their biases and norms",
    )

    def check(self, config: PreTrainedConfig) -> None:
        """Raise if there are no layers to permute."""
        from tombola.families import family_of_type

        family = family_of_type(config.model_type)
        keys = family.config if family is not None else None
        if self.across != "matrices" and keys is not None and getattr(config, keys.layers) < 2:
            raise ModelError(SINGLE_LAYER)

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Permute entries within every prunable matrix, the matrices of layers, or whole layers."""
        if self.across == "layers":
            return _shuffle_layers(model, seed)
        if self.across == "whole_layers":
            return _shuffle_whole_layers(model, seed)
        generator = torch.Generator().manual_seed(seed)
        for weight in _matrices(model):
            order = torch.randperm(weight.numel(), generator=generator)
            weight.copy_(weight.flatten()[order].view_as(weight))
        return None


@controls.register
class Noise(Control):
    """θ0 with Gaussian noise: how precisely must the weights be the pre-trained ones?"""

    kind: Literal["noise"] = "noise"
    sigma: float = Field(
        0.1, ge=0, description="standard deviation of the noise, relative to that of the weights"
    )
    spread: Literal["matrix", "all"] = Field(
        "matrix",
        description="standard deviation of each matrix, or of all prunable weights together (as released)",
    )

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Add Gaussian noise to every prunable matrix."""
        generator = torch.Generator().manual_seed(seed)
        weights = _matrices(model)
        pooled = _spread_of(weights) if self.spread == "all" else None
        for weight in weights:
            spread = weight.std() if pooled is None else pooled
            weight.add_(torch.randn(weight.shape, generator=generator) * (self.sigma * spread))


def _units(model: PreTrainedModel) -> Units:
    from tombola.masks import Units

    return Units.of(model, "weight")


def _matrices(model: PreTrainedModel) -> list[torch.Tensor]:
    """Return the prunable matrices; several of them may be parts of one fused tensor."""
    units = _units(model)
    stored = units.matrices(model)
    return [part.region(stored[part.tensor], group.count) for group in units.groups for part in group.parts]


def _shuffle_layers(model: PreTrainedModel, seed: int) -> None:
    """Permute the matrices of layers: those of one layer move together, to the same roles in another."""
    units = _units(model).without("pooler")
    weights = units.matrices(model)
    layers: dict[int | None, list[str]] = {}
    for matrix in units.layout.matrices:
        tensors = layers.setdefault(matrix.layer, [])
        if matrix.tensor not in tensors:  # a fused tensor holds several matrices
            tensors.append(matrix.tensor)
    copies = [[weights[tensor].clone() for tensor in tensors] for tensors in layers.values()]
    for tensors, source in zip(layers.values(), _order(len(copies), seed), strict=True):
        for tensor, moved in zip(tensors, copies[source], strict=True):
            weights[tensor].copy_(moved)


def _shuffle_whole_layers(model: PreTrainedModel, seed: int) -> None:
    """Permute layers with everything that all of them have; ModernBERT's first layer has one norm less."""
    from tombola.families import family_of

    layers = [layer.state_dict() for layer in family_of(model).layers_of(model)]
    common = [name for name in layers[0] if all(name in layer for layer in layers)]
    copies = [{name: layer[name].clone() for name in common} for layer in layers]
    for layer, source in zip(layers, _order(len(copies), seed), strict=True):
        for name in common:
            layer[name].copy_(copies[source][name])


def _order(count: int, seed: int) -> list[int]:
    if count < 2:
        raise ModelError(SINGLE_LAYER)
    order: list[int] = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    return order


def _spread_of(weights: list[torch.Tensor]) -> float:
    """Return the standard deviation of all entries together, without concatenating them."""
    count = sum(weight.numel() for weight in weights)
    total = sum(float(weight.sum(dtype=torch.float64)) for weight in weights)
    squares = sum(float(weight.double().square().sum()) for weight in weights)
    return math.sqrt((squares - total**2 / count) / (count - 1))
