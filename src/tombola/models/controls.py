"""Controls: pre-trained weights with something destroyed, to see whether it mattered.

Each answers one question about a ticket. (BERT-Tickets, section 4 and appendix)
"""

from typing import TYPE_CHECKING, Annotated, Literal

import torch
from pydantic import Field

from tombola.foundations.settings import Settings
from tombola.masks import Units

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Reinitialise(Settings):
    """θ0': is it the mask alone, or the pre-trained weights under it? Every encoder tensor is drawn anew."""

    kind: Literal["reinitialise"]


class Shuffle(Settings):
    """θ0'': is it where the weights stand, or only how they are distributed?"""

    kind: Literal["shuffle"]
    across: Literal["matrices", "layers"] = Field(
        "matrices",
        description="matrices: permute the entries inside each; layers: permute whole layers (as released)",
    )


class Noise(Settings):
    """How exactly must the weights be those of pre-training?"""

    kind: Literal["noise"]
    sigma: float = Field(0.1, ge=0, description="in standard deviations of each matrix")


Control = Annotated[Reinitialise | Shuffle | Noise, Field(discriminator="kind")]


@torch.no_grad()
def apply_control(control: Reinitialise | Shuffle | Noise, model: "PreTrainedModel", seed: int) -> None:
    """Change the model's weights in place, from `seed` alone."""
    match control:
        case Reinitialise():
            _reinitialise(model, seed)
        case Shuffle(across="layers"):
            _shuffle_layers(model, seed)
        case Shuffle():
            generator = torch.Generator().manual_seed(seed)
            for weight in Units.of(model, "weight").matrices(model).values():
                order = torch.randperm(weight.numel(), generator=generator)
                weight.copy_(weight.flatten()[order].view_as(weight))
        case Noise(sigma=sigma):
            generator = torch.Generator().manual_seed(seed)
            for weight in Units.of(model, "weight").matrices(model).values():
                weight.add_(torch.randn(weight.shape, generator=generator) * (sigma * weight.std()))


def _reinitialise(model: "PreTrainedModel", seed: int) -> None:
    from transformers import AutoModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = AutoModel.from_config(model.config)
    known = model.base_model.state_dict()
    drawn = fresh.state_dict()
    model.base_model.load_state_dict({name: drawn[name] for name in known})


def _shuffle_layers(model: "PreTrainedModel", seed: int) -> None:
    from tombola.families import family_of

    layers = family_of(model).layers_of(model)
    states = [{name: tensor.clone() for name, tensor in layer.state_dict().items()} for layer in layers]
    order = torch.randperm(len(states), generator=torch.Generator().manual_seed(seed)).tolist()
    for layer, source in zip(layers, order, strict=True):
        layer.load_state_dict(states[source])
