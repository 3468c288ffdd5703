"""The shape of a shrunk model, layer by layer: the config entry from which it is rebuilt on loading."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from tombola.errors import ModelError

METHOD: Literal["tombola"] = "tombola"


class LayerShape(BaseModel):
    """The remaining units of a layer.

    `heads` are the kept heads (KV groups, if heads share key and value), numbered as in the original model; `neurons`
    is the FFN's width. None means that the whole block is removed, including the bias of its last matrix, so that only
    the residual passes; with `()` and 0, only that bias remains.
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
            key = ".".join(map(str, first["loc"]))
            raise ModelError(
                f"the model was shrunk by Tombola, but quantization_config.{key} in its config is invalid "
                f"({first['msg']}): copy or create the folder again, or install a newer version of tombola."
            ) from None
