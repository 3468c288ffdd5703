"""The shape of a shrunk model, layer by layer: the config entry from which it is rebuilt on loading."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from tombola.errors import ModelError

METHOD: Literal["tombola"] = "tombola"
STRUCTURED = frozenset({"head", "neuron", "ffn", "layer"})
"""The units whose removal makes matrices smaller."""


class LayerShape(BaseModel):
    """What is left of one layer.

    `heads` are the kept heads (KV groups, if heads share key and value), numbered as in the original model; `neurons`
    is the FFN's width. None means that the whole block is gone, including the bias of its last matrix, and only the
    residual passes; `()` and 0 mean that only that bias is left.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    heads: tuple[NonNegativeInt, ...] | None
    neurons: NonNegativeInt | None


class ModelShape(BaseModel):
    """The shape of a shrunk model, stored as the config's `quantization_config`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    quant_method: Literal["tombola"] = METHOD
    version: Literal[1] = 1
    layers: tuple[LayerShape, ...]

    @classmethod
    def read(cls, data: object) -> "ModelShape":
        """Parse the shape in a config; raise an error if it is malformed or of a newer version.

        Args:
            data: The config's `quantization_config`.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ModelError(
                f"the model's config says it was shrunk by Tombola, but its quantization_config.{place} cannot be "
                f"read ({first['msg']}): copy or create the folder again, or install a newer version of tombola."
            ) from None
