"""Load shrunk folders with transformers, whose quantizers may change a model before its weights are loaded.

Nothing is quantised: the model is cut to its shape, and then trains, casts and saves like any other.
`tombola.shrink.registration` imports this module while transformers itself may be only half imported, so the cutting
code is imported only when a model loads.
"""

from typing import TYPE_CHECKING, Any

from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from tombola.errors import ModelError
from tombola.shrink.shape import METHOD, ModelShape

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@register_quantization_config(METHOD)
class ShrunkConfig(QuantizationConfigMixin):
    """The shape of a shrunk model, stored in `config.quantization_config`."""

    def __init__(self, **data: Any) -> None:
        shape = ModelShape.read(data).model_dump(mode="json")
        self.quant_method: str = shape["quant_method"]
        self.version: int = shape["version"]
        self.layers: list[dict[str, Any]] = shape["layers"]


@register_quantizer(METHOD)
class ShrunkLoader(HfQuantizer):
    """Cuts the empty model to its shape before the weights arrive, and checks that they fit."""

    def _process_model_before_weight_loading(self, model: "PreTrainedModel", **_: Any) -> None:
        import torch

        from tombola.shrink.cutting import cut, cuts_to

        with torch.device("cpu"):  # indices need values even if the model is still on the meta device
            cut(model, cuts_to(model, ModelShape.read(self.quantization_config.to_dict())))
        self._expected = {name: tensor.shape for name, tensor in model.state_dict().items()}

    def _process_model_after_weight_loading(self, model: "PreTrainedModel", **_: Any) -> None:
        for name, tensor in model.state_dict().items():
            if tensor.shape != self._expected[name]:
                raise ModelError(
                    f"the stored {name} has shape {tuple(tensor.shape)}, but this shrunk model needs "
                    f"{tuple(self._expected[name])}: to use another task head, save the shrunk model without its head "
                    "(AutoModel.from_pretrained(folder).save_pretrained(new_folder)) and load the new folder."
                )
        self.remove_quantization_config(model)
        model.config.quantization_config = self.quantization_config

    def is_serializable(self) -> bool:
        """Return True: a shrunk model can be saved."""
        return True

    @property
    def is_trainable(self) -> bool:
        """True: a shrunk model can be trained."""
        return True
