"""Physically smaller tickets: units cut out of the matrices, packed weights, ONNX.

`import tombola` imports this package to register the loader of shrunk folders, so its names load lazily.
"""

from typing import TYPE_CHECKING

from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.shrink.measuring import count_flops, measure
    from tombola.shrink.onnx import Export, export_onnx
    from tombola.shrink.packing import pack, unpack
    from tombola.shrink.past import convert_pruned_heads
    from tombola.shrink.shape import LayerShape, ModelShape
    from tombola.shrink.shrinking import shrink
    from tombola.shrink.sizes import Row, Sizes, Speedup, compare
    from tombola.shrink.texts import RandomTokens, TaskTexts
    from tombola.shrink.uniform import UniformShape, shrink_uniformly

_HOME = {
    "Export": "onnx",
    "LayerShape": "shape",
    "ModelShape": "shape",
    "RandomTokens": "texts",
    "Row": "sizes",
    "Sizes": "sizes",
    "Speedup": "sizes",
    "TaskTexts": "texts",
    "UniformShape": "uniform",
    "compare": "sizes",
    "convert_pruned_heads": "past",
    "count_flops": "measuring",
    "export_onnx": "onnx",
    "measure": "measuring",
    "pack": "packing",
    "shrink": "shrinking",
    "shrink_uniformly": "uniform",
    "unpack": "packing",
}

__all__ = [
    "Export",
    "LayerShape",
    "ModelShape",
    "RandomTokens",
    "Row",
    "Sizes",
    "Speedup",
    "TaskTexts",
    "UniformShape",
    "compare",
    "convert_pruned_heads",
    "count_flops",
    "export_onnx",
    "measure",
    "pack",
    "shrink",
    "shrink_uniformly",
    "unpack",
]

__getattr__ = lazily(__name__, _HOME)
