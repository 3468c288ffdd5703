"""Tickets that are really smaller: units cut out of the matrices, packed weights, ONNX.

`import tombola` reaches this package to install the loading of shrunk folders, so names load when first used.
"""

from typing import TYPE_CHECKING

from tombola.lazy import lazily

if TYPE_CHECKING:
    from tombola.shrink.measuring import Row, Sizes, compare, count_flops, measure
    from tombola.shrink.onnx import Export, export_onnx
    from tombola.shrink.packing import pack, unpack
    from tombola.shrink.past import convert_pruned_heads
    from tombola.shrink.shape import LayerShape, ModelShape
    from tombola.shrink.shrinking import shrink
    from tombola.shrink.tickets import Packing, Shrinkage, pack_ticket, shrink_ticket

_HOME = {
    "Export": "onnx",
    "LayerShape": "shape",
    "ModelShape": "shape",
    "Packing": "tickets",
    "Row": "measuring",
    "Shrinkage": "tickets",
    "Sizes": "measuring",
    "compare": "measuring",
    "convert_pruned_heads": "past",
    "count_flops": "measuring",
    "export_onnx": "onnx",
    "measure": "measuring",
    "pack": "packing",
    "pack_ticket": "tickets",
    "shrink": "shrinking",
    "shrink_ticket": "tickets",
    "unpack": "packing",
}

__all__ = [
    "Export",
    "LayerShape",
    "ModelShape",
    "Packing",
    "Row",
    "Shrinkage",
    "Sizes",
    "compare",
    "convert_pruned_heads",
    "count_flops",
    "export_onnx",
    "measure",
    "pack",
    "pack_ticket",
    "shrink",
    "shrink_ticket",
    "unpack",
]

__getattr__ = lazily(__name__, _HOME)
