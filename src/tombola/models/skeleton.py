"""A model on the meta device whose parts are filled from its folder and emptied again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import ModelError
from tombola.families import family_of
from tombola.foundations.lazy import lazy_module
from tombola.foundations.quiet import quiet
from tombola.models.safety import open_config
from tombola.models.shards import Shards

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from transformers import PreTrainedModel
else:
    torch = lazy_module("torch")


class Skeleton:
    """The base model of a folder on the meta device, without its head.

    Args:
        folder: A model folder.
        device: The device of filled parts.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        from transformers import AutoModel

        self.shards, self.device = Shards(folder), device
        config = open_config(folder)
        if (stored := getattr(config, "quantization_config", None)) is not None:
            raise ModelError(
                f"{folder} stores matrices whose shapes do not match its config (quantization_config: "
                f"{stored.get('quant_method')}): prune a model with a free layout with a recipe (tombola run), and "
                "prune before you quantise"
            )
        with quiet(), torch.device("meta"):
            self.model: PreTrainedModel = AutoModel.from_config(config, dtype=torch.float32)
        self.model.eval()
        words = self.model.get_input_embeddings()
        self._looked_up = words if type(words) is torch.nn.Embedding else None
        """The word embeddings, which stay in the file's dtype, where they take less memory."""
        if self._looked_up is not None:
            words.register_forward_hook(lambda module, inputs, output: output.float())
        self._layers = f"{family_of(self.model).layers}."

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(family_of(self.model).layers_of(self.model))

    def fill_before_layers(self) -> None:
        """Load everything outside the layers, word embeddings in their own dtype. What the folder lacks stays empty."""
        self._fill(lambda name: not name.startswith(self._layers), required=False)

    def empty_before_layers(self) -> None:
        """Discard the values outside the layers."""
        self._empty(lambda name: not name.startswith(self._layers))

    def fill_layer(self, index: int) -> None:
        """Load a layer in 32 bits."""
        self._fill(lambda name: name.startswith(f"{self._layers}{index}."), required=True)

    def empty_layer(self, index: int) -> None:
        """Discard a layer's values."""
        self._empty(lambda name: name.startswith(f"{self._layers}{index}."))

    def stored_name(self, name: str) -> str | None:
        """Return the stored name of a tensor of the base model, if it exists."""
        return self.shards.first_of((f"{self.model.base_model_prefix}.{name}", name))

    def _parts(self, chosen: Callable[[str], bool]) -> Iterator[tuple[str, nn.Module]]:
        for path, module in self.model.named_modules():
            if chosen(f"{path}."):
                yield path, module

    @torch.no_grad()
    def _fill(self, chosen: Callable[[str], bool], *, required: bool) -> None:
        for path, module in self._parts(chosen):
            self._fill_buffers(path, module)
            for leaf in list(module._parameters):
                if module._parameters[leaf] is None:
                    continue
                name = f"{path}.{leaf}" if path else leaf
                value = self._value(name, None if module is self._looked_up else torch.float32)
                if value is not None:
                    module._parameters[leaf] = torch.nn.Parameter(value, requires_grad=False)
                elif required:
                    raise ModelError(
                        f"{self.shards.folder} has no tensor {name!r}, which a {self.model.config.model_type} model "
                        "needs: its files are incomplete, or store the layers in a different form from the one in "
                        "memory; prune it with a recipe (tombola run), which loads the whole model"
                    )

    def _fill_buffers(self, path: str, module: nn.Module) -> None:
        """Compute buffers as transformers does, and load those that it loads: files may hold others of old versions."""
        empty = [leaf for leaf, value in module._buffers.items() if value is not None and value.is_meta]
        if not empty:
            return
        for leaf in empty:
            module._buffers[leaf] = torch.empty_like(module._buffers[leaf], device=self.device)  # type: ignore[arg-type]
        self.model._init_weights(module)
        for leaf in set(empty) - module._non_persistent_buffers_set:
            value = self._value(f"{path}.{leaf}")
            if value is not None:
                module._buffers[leaf] = value.to(module._buffers[leaf].dtype)  # type: ignore[union-attr]

    def _value(self, name: str, dtype: torch.dtype | None = None) -> Tensor | None:
        """Return a tensor of the files, converted to a dtype if one is given; None if there is none."""
        stored = self.stored_name(name)
        return None if stored is None else self.shards.read(stored, dtype).to(self.device)

    def _empty(self, chosen: Callable[[str], bool]) -> None:
        for _, module in self._parts(chosen):
            for values in (module._parameters, module._buffers):
                for leaf, value in values.items():
                    if value is None:
                        continue
                    bare = torch.empty_like(value, device="meta")
                    is_parameter = isinstance(value, torch.nn.Parameter)
                    values[leaf] = torch.nn.Parameter(bare, requires_grad=False) if is_parameter else bare  # type: ignore[assignment]
