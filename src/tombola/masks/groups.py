"""Groups of prunable units: the tensor slices that each head, neuron, row … covers."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeVar, get_args

from torch import Tensor

from tombola.errors import UnknownName
from tombola.families import families
from tombola.masks.layout import ATTENTION, FFN, Layout, Matrix
from tombola.masks.names import Granularity

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Part:
    """The slices of one stored tensor that a group's units cover.

    Unit i covers `width` indices of `dim`, starting at `start + i * width`. Without a `dim`, either each element is a
    unit (weights) or the whole tensor is one unit. In a fused tensor the part lies inside `slab`: (dimension, start,
    length).
    """

    tensor: str
    dim: int | None = None
    start: int = 0
    width: int = 0
    slab: tuple[int, int, int] | None = None

    def region(self, tensor: Tensor, count: int) -> Tensor:
        """Return a view of the region of the stored tensor that `count` units cover."""
        if self.slab is not None:
            tensor = tensor.narrow(*self.slab)
        return tensor if self.dim is None else tensor.narrow(self.dim, self.start, count * self.width)

    def spread(self, values: Tensor, dims: int) -> Tensor:
        """Reshape one value per unit to broadcast over the region of a tensor with `dims` dimensions."""
        if self.dim is None:
            return values if values.dim() == dims else values.reshape((1,) * dims)
        shape = [1] * dims
        shape[self.dim] = -1
        return values.repeat_interleave(self.width).reshape(shape)


@dataclass(frozen=True)
class Group:
    """Units of one kind in one place: the weights of a matrix, the heads of a layer."""

    name: str
    layer: int | None
    kind: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    biases: tuple[Part, ...]
    weights: int

    @property
    def count(self) -> int:
        """The number of units."""
        return prod(self.shape)

    @property
    def elementwise(self) -> bool:
        """Whether every unit is one entry of a tensor."""
        return self.weights == self.count and all(part.dim is None for part in self.parts)

    @property
    def unit_weights(self) -> int:
        """The number of prunable weights that each unit covers."""
        return self.weights // self.count


def groups_of(layout: Layout, granularity: str) -> Iterator[Group]:
    """Yield the groups of a layout at one granularity, in forward order; no layers that the family must keep."""
    if granularity not in get_args(Granularity):
        raise UnknownName("granularity", granularity, get_args(Granularity))
    if granularity in ("weight", "row", "column"):
        for matrix in layout.matrices:
            yield _matrix_group(matrix, granularity)
            if layout.biases and matrix.bias is not None:
                yield _bias_group(matrix)
        return
    fixed = [layer for family in families() if family.name == layout.family for layer in family.fixed_layers]
    for layer, roles in layout.layers().items():
        attention = [roles[role] for role in ATTENTION if role in roles]
        ffn = [roles[role] for role in FFN if role in roles]
        match granularity:
            case "head":
                yield _sliced("heads", "head", layer, attention, layout.heads(layer))
            case "neuron":
                yield _sliced("neurons", "neuron", layer, ffn, roles["up"].outputs)
            case "ffn":
                yield _whole(f"layers.{layer}.ffn", "ffn", layer, ffn)
            case "layer" if layer not in fixed:
                yield _whole(f"layers.{layer}", "layer", layer, attention + ffn)


def _matrix_group(matrix: Matrix, granularity: str) -> Group:
    biases: tuple[Part, ...] = ()
    match granularity:
        case "weight":
            shape: tuple[int, ...] = matrix.shape
            part = _all_of(matrix)
        case "row":
            shape, part, biases = (matrix.outputs,), _rows(matrix, 1), _bias_rows(matrix, 1)
        case _:
            shape, part = (matrix.inputs,), _columns(matrix, 1)
    return Group(matrix.name, matrix.layer, matrix.kind, shape, (part,), biases, matrix.size)


def _bias_group(matrix: Matrix) -> Group:
    """Return the group of a bias, in which each entry is a unit."""
    return Group(
        f"{matrix.name}.bias",
        matrix.layer,
        "bias",
        (matrix.outputs,),
        _all_of_bias(matrix),
        (),
        matrix.outputs,
    )


def _sliced(label: str, kind: str, layer: int, matrices: list[Matrix], count: int) -> Group:
    """Return `count` equal slices: rows of the input matrices, columns of the output matrix, which comes last."""
    *inward, outward = matrices
    widths = [matrix.outputs // count for matrix in inward]
    parts = [_rows(matrix, width) for matrix, width in zip(inward, widths, strict=True)]
    biases = [
        part for matrix, width in zip(inward, widths, strict=True) for part in _bias_rows(matrix, width)
    ]
    parts.append(_columns(outward, outward.inputs // count))
    size = sum(matrix.size for matrix in matrices)
    return Group(f"layers.{layer}.{label}", layer, kind, (count,), tuple(parts), tuple(biases), size)


def _whole(name: str, kind: str, layer: int, matrices: list[Matrix]) -> Group:
    parts = tuple(_all_of(matrix) for matrix in matrices)
    biases = tuple(part for matrix in matrices for part in _all_of_bias(matrix))
    return Group(name, layer, kind, (1,), parts, biases, sum(matrix.size for matrix in matrices))


def _slab(matrix: Matrix, dim: int) -> tuple[int, int, int] | None:
    return (dim, matrix.start, matrix.outputs) if matrix.whole else None


def _all_of(matrix: Matrix) -> Part:
    return Part(matrix.tensor, slab=_slab(matrix, matrix.out_dim))


def _all_of_bias(matrix: Matrix) -> tuple[Part, ...]:
    return (Part(matrix.bias, slab=_slab(matrix, 0)),) if matrix.bias else ()


def _rows(matrix: Matrix, width: int) -> Part:
    return Part(matrix.tensor, matrix.out_dim, matrix.start, width)


def _bias_rows(matrix: Matrix, width: int) -> tuple[Part, ...]:
    return (Part(matrix.bias, 0, matrix.start, width),) if matrix.bias else ()


def _columns(matrix: Matrix, width: int) -> Part:
    return Part(matrix.tensor, 1 - matrix.out_dim, 0, width, slab=_slab(matrix, matrix.out_dim))


def removed_shares(
    groups: Iterable[Group], removed: Callable[[Group], int], key: Callable[[Group], K]
) -> dict[K, float]:
    """Return the share of the weights that is removed, over all groups with the same key.

    Args:
        groups: The groups.
        removed: The number of removed units of a group.
        key: What to add groups up by, such as their layer.
    """
    gone: dict[K, int] = {}
    total: dict[K, int] = {}
    for group in groups:
        place = key(group)
        gone[place] = gone.get(place, 0) + removed(group) * group.unit_weights
        total[place] = total.get(place, 0) + group.weights
    return {place: gone[place] / total[place] for place in total}
