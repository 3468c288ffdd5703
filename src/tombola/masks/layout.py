"""The prunable matrices of a model's layers, found through its family."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from tombola.errors import ModelError, RecipeError
from tombola.families import Family, Location, family_of

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

Role = Literal[
    "query",
    "key",
    "value",
    "output",
    "position_key",
    "position_query",
    "up",
    "gate",
    "down",
    "pooler",
    "classifier",
]

ATTENTION: tuple[Role, ...] = ("query", "key", "value", "position_key", "position_query", "output")
FFN: tuple[Role, ...] = ("up", "gate", "down")
POOLER: Role = "pooler"
CLASSIFIER: Role = "classifier"
HEAD = "head."
"""Prefix of tensor names that belong to the task head, not to the base model."""
OPTIONAL: frozenset[Role] = frozenset({"position_key", "position_query", "pooler"})  # not in every model


class Matrix(BaseModel):
    """One prunable matrix: a stored tensor, or a slice of its `whole` output features that begins at `start`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    layer: int | None = None
    kind: Role
    tensor: str
    bias: str | None = None
    shape: tuple[PositiveInt, PositiveInt]
    start: NonNegativeInt = 0
    whole: PositiveInt | None = None
    transposed: bool = False

    @property
    def out_dim(self) -> int:
        """The dimension of the stored tensor that holds output features ("rows"); 1 in GPT-2's Conv1D."""
        return int(self.transposed)

    @property
    def outputs(self) -> int:
        """The number of output features of this matrix."""
        return self.shape[self.out_dim]

    @property
    def inputs(self) -> int:
        """The number of input features of this matrix."""
        return self.shape[1 - self.out_dim]

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.shape[0] * self.shape[1]

    @property
    def stored_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of the stored tensor, and of its bias if it has one."""
        stored = list(self.shape)
        stored[self.out_dim] = self.whole or self.outputs
        shapes: dict[str, tuple[int, ...]] = {self.tensor: tuple(stored)}
        if self.bias is not None:
            shapes[self.bias] = (stored[self.out_dim],)
        return shapes


class Layout(BaseModel):
    """The prunable matrices of one model in forward order, the rows per head, and the model's total size.

    With `biases`, the biases of the matrices are prunable too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str
    matrices: tuple[Matrix, ...]
    head_dim: PositiveInt
    parameters: PositiveInt
    biases: bool = False

    @classmethod
    def of(
        cls,
        model: "PreTrainedModel",
        *,
        classifier: bool = False,
        biases: bool = False,
        layers: Sequence[int] | None = None,
    ) -> "Layout":
        """Return the layout of a model, with or without a head; names are relative to its base model.

        Args:
            model: A model of a known family.
            classifier: Whether the matrices of its task head are prunable too.
            biases: Whether the biases of its matrices are prunable too.
            layers: The prunable layers; all by default.
        """
        family = family_of(model)
        shapes = {name: parameter.shape for name, parameter in model.base_model.named_parameters()}
        places = [
            (layer, role, location)
            for layer in range(len(family.layers_of(model)))
            for role in (*ATTENTION, *FFN)
            if (location := _in_layer(family, layer, role)) is not None
        ]
        pooler = [(None, POOLER, Location(module=family.pooler))] if family.pooler else []
        matrices = [_matrix(family, model.config, *place, shapes) for place in (*places, *pooler)]
        heads = _head_matrices(model) if classifier else []
        all_matrices = [matrix for matrix in (*matrices, *heads) if matrix is not None]
        if layers is not None:
            _check_layers(layers, len(family.layers_of(model)))
            all_matrices = [
                matrix for matrix in all_matrices if matrix.layer is None or matrix.layer in layers
            ]
        counted = model if classifier else model.base_model
        return cls(
            family=family.name,
            matrices=tuple(all_matrices),
            head_dim=family.head_dim_in(model.config) * (3 if family.attention.together else 1),
            parameters=sum(parameter.numel() for parameter in counted.parameters()),
            biases=biases,
        )

    @property
    def prunable(self) -> int:
        """The number of prunable weights, the denominator of every weight sparsity."""
        biased = [matrix for matrix in self.matrices if self.biases and matrix.bias is not None]
        return sum(matrix.size for matrix in self.matrices) + sum(matrix.outputs for matrix in biased)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the stored tensors that pruning may change, biases included."""
        return {name: shape for matrix in self.matrices for name, shape in matrix.stored_shapes.items()}

    def heads(self, layer: int) -> int:
        """Return the number of heads in a layer (KV groups, if heads share key and value)."""
        roles = self.layers()[layer]
        return roles.get("key", roles["query"]).outputs // self.head_dim

    def layers(self) -> dict[int, dict[Role, Matrix]]:
        """Return the matrices of each layer by role."""
        layers: dict[int, dict[Role, Matrix]] = {}
        for matrix in self.matrices:
            if matrix.layer is not None:
                layers.setdefault(matrix.layer, {})[matrix.kind] = matrix
        return layers


def parameters_of(model: "PreTrainedModel") -> "dict[str, torch.nn.Parameter]":
    """Return the parameters that masks may name: the base model's under its own names, the head's after `HEAD`."""
    base = dict(model.base_model.named_parameters())
    in_base = {id(parameter) for parameter in base.values()}
    head = {HEAD + name: tensor for name, tensor in model.named_parameters() if id(tensor) not in in_base}
    return {**base, **head}


def loaded_parameters_of(model: "PreTrainedModel") -> "dict[str, torch.nn.Parameter]":
    """Return the parameters that masks may name; raise if a `device_map` has offloaded one, without values."""
    parameters = parameters_of(model)
    for name, parameter in parameters.items():
        if parameter.is_meta and getattr(model, "hf_device_map", None):
            raise ModelError(
                f"{name} is offloaded by the model's device_map, so it can be neither read nor changed: load the "
                "model without offloading, or prune its folder with `tombola prune`, which loads one layer at a time."
            )
    return parameters


def state_name(model: "PreTrainedModel", name: str) -> str:
    """Return the state dict name of a tensor that a mask refers to."""
    if name.startswith(HEAD):
        return name.removeprefix(HEAD)
    return name if model is model.base_model else f"{model.base_model_prefix}.{name}"


def _head_matrices(model: "PreTrainedModel") -> list[Matrix]:
    """Return the linear layers of the task head that are not tied to the base model."""
    import torch

    parameters = parameters_of(model)
    matrices = []
    for path, module in model.named_modules():
        tensor, bias = f"{HEAD}{path}.weight", f"{HEAD}{path}.bias"
        if isinstance(module, torch.nn.Linear) and tensor in parameters:
            matrices.append(
                Matrix(
                    name=f"{HEAD}{path}",
                    kind=CLASSIFIER,
                    tensor=tensor,
                    bias=bias if bias in parameters else None,
                    shape=(module.out_features, module.in_features),
                )
            )
    if not matrices:
        raise ModelError("the model has no task head to prune: leave out `classifier`.")
    return matrices


def _check_layers(layers: Sequence[int], count: int) -> None:
    wrong = [layer for layer in layers if not 0 <= layer < count]
    if wrong:
        raise RecipeError(
            f"search.layers: there is no layer {wrong[0]}: the model has layers 0 to {count - 1}"
        )


def _in_layer(family: Family, layer: int, role: Role) -> Location | None:
    """Return the location of a role's matrix in one layer, as a path below the base model."""
    room = family.attention if role in ATTENTION else family.ffn
    location: Location | None = getattr(room, role)
    if location is None:
        return None
    return location.model_copy(update={"module": f"{family.layers}.{layer}.{location.module}"})


def _matrix(
    family: Family,
    config: "PretrainedConfig",
    layer: int | None,
    role: Role,
    location: Location,
    shapes: Mapping[str, "torch.Size"],
) -> Matrix | None:
    path = location.module
    tensor, bias = f"{path}.weight", f"{path}.bias"
    if tensor not in shapes:
        if role in OPTIONAL:
            return None
        changed = getattr(config, "quantization_config", None) is not None
        remedy = (
            "use the model from before it was shrunk or quantised"
            if changed
            else "load it without adapters or parametrisations"
        )
        raise ModelError(
            f"this model has no tensor {tensor!r}, where the family {family.name!r} keeps its {role} matrix: {remedy}."
        )
    shape, out_dim = list(shapes[tensor]), int(family.transposed)
    part = family.part_of(config, location, role, shape[out_dim])
    whole, shape[out_dim] = shape[out_dim], len(part)
    return Matrix(
        name=f"{path}.{role}" if location.parts else path,
        layer=layer,
        kind=role,
        tensor=tensor,
        bias=bias if bias in shapes else None,
        shape=(shape[0], shape[1]),
        start=part.start,
        whole=whole if location.parts else None,
        transposed=family.transposed,
    )
