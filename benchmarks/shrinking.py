"""The speed-up of shrunk models against the FLOP ratio, in PyTorch and onnxruntime.

    python benchmarks/shrinking.py [--models minilm bert-base smollm2] [--batches 1 32] [--lengths 32 128]
        [--runtimes torch onnx int8]

Heads and neurons go at random over all layers, the same share of both, by the wanted ratio. Dense and shrunk models of
one runtime take turns on the same batch. smollm2 is a decoder with the sizes of SmolLM2-135M, in PyTorch only: the
heads of a layer go in whole groups, and a second row removes whole layers in place of heads and neurons.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from measuring import Figure, in_turns, run
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    BertConfig,
    LlamaConfig,
    PreTrainedModel,
)

from tombola.foundations.quiet import quiet
from tombola.masks import Mask, Scores, Units, draw
from tombola.models.finding import find_model
from tombola.shrink import RandomTokens, count_flops, shrink
from tombola.shrink.measuring import forward_pass
from tombola.shrink.onnx_writing import quantise_onnx, write_onnx
from tombola.shrink.runtime import open_session, session_pass

RATIOS = {"encoder": (1.3, 2.0, 4.0), "decoder": (1.3, 1.6)}
RUNTIMES = ("torch", "onnx", "int8")

Pass = Callable[[Any], object]


def load(name: str) -> PreTrainedModel:
    if name == "bert-base":
        return AutoModelForSequenceClassification.from_config(BertConfig())
    if name == "smollm2":
        return AutoModelForCausalLM.from_config(
            LlamaConfig(
                hidden_size=576,
                intermediate_size=1536,
                num_hidden_layers=30,
                num_attention_heads=9,
                num_key_value_heads=3,
                vocab_size=49_152,
                tie_word_embeddings=True,
            )
        )
    with quiet():
        return AutoModelForSequenceClassification.from_pretrained(find_model(name).folder)


def random_mask(units: Units, sparsity: float) -> Mask:
    generator = torch.Generator().manual_seed(0)
    scores = {group.name: torch.rand(group.shape, generator=generator) for group in units.groups}
    return draw(Scores(units, scores), sparsity)


def shrunk_by(model: PreTrainedModel, ratio: float) -> PreTrainedModel:
    heads = Units.of(model, "head")
    neurons = Units.of(model, "neuron", base=heads.base)
    sparsity = 1 - 1 / ratio
    return shrink(model, random_mask(heads, sparsity).join(random_mask(neurons, sparsity)))


def shortened_by(model: PreTrainedModel, ratio: float) -> PreTrainedModel:
    return shrink(model, random_mask(Units.of(model, "layer"), 1 - 1 / ratio))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", default=["minilm", "bert-base", "smollm2"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--lengths", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--runtimes", nargs="+", choices=RUNTIMES, default=list(RUNTIMES))


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    for name in given.models:
        dense = load(name).eval()
        decoder = name == "smollm2"
        for cut in (shrunk_by, shortened_by) if decoder else (shrunk_by,):
            smaller = {
                ratio: cut(dense, ratio).eval() for ratio in RATIOS["decoder" if decoder else "encoder"]
            }
            about = f"{name}, layers" if cut is shortened_by else name
            runtimes = ["torch"] if decoder else given.runtimes
            with tempfile.TemporaryDirectory() as folder:
                passes = {one: passes_of([dense, *smaller.values()], one, Path(folder)) for one in runtimes}
                for runtime, length, batch in product(runtimes, given.lengths, given.batches):
                    what = f"{about}, {batch} × {length}" + (f", {runtime}" if runtime != "torch" else "")
                    yield from compared(what, dense, smaller, passes[runtime], (batch, length), given.quick)


def compared(
    what: str,
    dense: PreTrainedModel,
    smaller: Mapping[float, PreTrainedModel],
    passes: list[Pass],
    shape: tuple[int, int],
    quick: bool,
) -> Iterator[Figure]:
    """The speed-up of each smaller model over the dense one, divided by its FLOP ratio."""
    batch, length = shape
    (inputs,) = RandomTokens(length).batches(dense, batch, 1)
    repeats = max(1, 512 // (batch * length))

    def repeated(forward: Pass) -> Callable[[], None]:
        def call() -> None:
            with torch.inference_mode():
                for _ in range(repeats):
                    forward(inputs)

        return call

    ways = {str(index): repeated(forward) for index, forward in enumerate(passes)}
    turns = in_turns(ways, rounds=4 if quick else 15, seconds=60, warm_up=2)
    for index, (ratio, model) in enumerate(smaller.items(), start=1):
        flops = count_flops(dense, 1, length) / count_flops(model, 1, length)
        faster = turns.ratio(f"{what}: speed-up ÷ FLOP ratio at {ratio:g} ×", "0", str(index), "≥ 0.93")
        scaled = {end: getattr(faster, end) / flops for end in ("value", "low", "high", "wall")}
        yield replace(faster, **scaled, note=f"{faster.value:.2f} × for {flops:.2f} × fewer FLOPs")


def passes_of(models: list[PreTrainedModel], runtime: str, folder: Path) -> list[Pass]:
    """A function for each model that runs it on a batch."""
    if runtime == "torch":
        return [forward_pass(model) for model in models]
    found = []
    for index, model in enumerate(models):
        file = folder / f"{index}.onnx"
        eight_bits = file.with_suffix(".int8.onnx")
        if not file.exists():
            write_onnx(model, file)
            quantise_onnx(model, eight_bits)
        chosen = file if runtime == "onnx" else eight_bits
        found.append(session_pass(open_session(chosen)))
    return found


if __name__ == "__main__":
    run(__doc__, figures, options)
