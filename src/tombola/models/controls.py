"""Controls: pre-trained weights with something destroyed, to see whether it mattered.

Each answers one question about a ticket. (BERT-Tickets, section 4 and appendix)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.foundations.choices import Choice, Choices
from tombola.foundations.lazy import lazy_module

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
else:
    torch = lazy_module("torch")

controls: Choices[type[Control]] = Choices("control")


class Control(Choice):
    """Something that is destroyed in a model before it is trained."""

    choices: ClassVar = controls

    kind: str

    @abstractmethod
    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Change the model's weights in place, from `seed` alone. Called without gradients."""
        ...


def apply_control(control: Control, model: PreTrainedModel, seed: int) -> None:
    """Change the model's weights in place, from `seed` alone."""
    with torch.no_grad():
        control.apply(model, seed)


@controls.register
class Reinitialise(Control):
    """θ0': is it the mask alone, or the pre-trained weights under it? Every encoder tensor is drawn anew."""

    kind: Literal["reinitialise"] = "reinitialise"

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Load a freshly initialised encoder of the same config."""
        from transformers import AutoModel

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            fresh = AutoModel.from_config(model.config)
        known = model.base_model.state_dict()
        drawn = fresh.state_dict()
        model.base_model.load_state_dict({name: drawn[name] for name in known})


@controls.register
class Shuffle(Control):
    """θ0'': is it where the weights stand, or only how they are distributed?"""

    kind: Literal["shuffle"] = "shuffle"
    across: Literal["matrices", "layers"] = Field(
        "matrices",
        description="matrices: permute the entries inside each; layers: permute whole layers (as released)",
    )

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Permute entries within every prunable matrix, or whole layers."""
        if self.across == "layers":
            return _shuffle_layers(model, seed)
        generator = torch.Generator().manual_seed(seed)
        for weight in _matrices(model):
            order = torch.randperm(weight.numel(), generator=generator)
            weight.copy_(weight.flatten()[order].view_as(weight))


@controls.register
class Noise(Control):
    """How exactly must the weights be those of pre-training?"""

    kind: Literal["noise"] = "noise"
    sigma: float = Field(0.1, ge=0, description="in standard deviations of each matrix")

    def apply(self, model: PreTrainedModel, seed: int) -> None:
        """Add Gaussian noise to every prunable matrix."""
        generator = torch.Generator().manual_seed(seed)
        for weight in _matrices(model):
            weight.add_(torch.randn(weight.shape, generator=generator) * (self.sigma * weight.std()))


def _matrices(model: PreTrainedModel) -> list[torch.nn.Parameter]:
    from tombola.masks import Units

    return list(Units.of(model, "weight").matrices(model).values())


def _shuffle_layers(model: PreTrainedModel, seed: int) -> None:
    from tombola.families import family_of

    layers = family_of(model).layers_of(model)
    states = [{name: tensor.clone() for name, tensor in layer.state_dict().items()} for layer in layers]
    order = torch.randperm(len(states), generator=torch.Generator().manual_seed(seed)).tolist()
    for layer, source in zip(layers, order, strict=True):
        layer.load_state_dict(states[source])
