"""What is left of a shrunk model, layer by layer: the entry in its config that loading builds it from."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from tombola.errors import ModelError

METHOD: Literal["tombola"] = "tombola"
STRUCTURED = frozenset({"head", "neuron", "ffn", "layer"})
"""The units whose removal makes matrices smaller."""


class LayerShape(BaseModel):
    """What is left of one layer.

    `heads` are the kept heads (whole KV groups where key and value are shared), numbered as in the model
    that was never shrunk; `neurons` is the FFN's width. None means that the whole is gone, the bias of its
    last matrix included, and only the residual passes; nothing kept but that bias is `()` and 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    heads: tuple[NonNegativeInt, ...] | None
    neurons: NonNegativeInt | None


class ModelShape(BaseModel):
    """The shape of a shrunk model, in the config's place for how its weights differ from the config's sizes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    quant_method: Literal["tombola"] = METHOD
    version: Literal[1] = 1
    layers: tuple[LayerShape, ...]

    @classmethod
    def read(cls, data: object) -> "ModelShape":
        """The shape that a config carries, refused with one sentence if it is malformed or from the future.

        Args:
            data: The config's `quantization_config`.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ModelError(
                f"the model's config says it was shrunk by Tombola, but its quantization_config.{place} "
                f"cannot be read ({first['msg']}): get the folder again, or a newer version of tombola."
            ) from None
