"""What one operator for attention gains in the 8-bit file: MiniLM and a ticket of it, with and without it.

    python benchmarks/onnx_attention.py [--threads 1]

The plain file is quantised from the portable graph, the fused one from a graph with the operator, as Tombola ships it.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import torch
from measuring import Figure, in_turns, run
from shrinking import load, shrunk_by
from transformers import PreTrainedModel

from tombola.shrink import RandomTokens
from tombola.shrink.onnx_writing import quantise_onnx
from tombola.shrink.runtime import open_session, session_pass

SHAPES = ((1, 16), (1, 32), (1, 128), (32, 32), (32, 128))


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    dense = load("minilm").eval()
    for name, model in (("minilm", dense), ("minilm shrunk 2 ×", shrunk_by(dense, 2.0).eval())):
        with tempfile.TemporaryDirectory() as folder:
            fused, plain = Path(folder) / "fused.onnx", Path(folder) / "plain.onnx"
            quantise_onnx(model, fused)
            with patch("tombola.shrink.onnx_writing.can_fuse", lambda *_: False):
                quantise_onnx(model, plain)
            for batch, length in SHAPES:
                ways = {"plain": way(plain, model, batch, length), "fused": way(fused, model, batch, length)}
                turns = in_turns(ways, rounds=4 if given.quick else 15, seconds=60, warm_up=2)
                what = f"{name}, int8, {batch} × {length}: plain attention ÷ one operator"
                yield turns.ratio(what, "plain", "fused", "≥ 1")


def way(file: Path, model: PreTrainedModel, batch: int, length: int) -> Callable[[], None]:
    """Run a file on a batch, a small one several times."""
    forward = session_pass(open_session(file))
    (inputs,) = RandomTokens(length).batches(model, batch, 1)

    def call() -> None:
        with torch.inference_mode():
            for _ in range(max(1, 512 // (batch * length))):
                forward(inputs)

    return call


if __name__ == "__main__":
    run(__doc__, figures)
