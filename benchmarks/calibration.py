"""What Wanda costs: scoring all layers against the calibration forward passes alone.

    python benchmarks/calibration.py [--hidden 512] [--layers 8] [--length 128] [--threads 1]

A random Llama reads 128 examples layer by layer, once plainly and once with Wanda: the sums over all inputs, the scores
of all weights, and with `in order` the pruning of each layer too. Pruning in order passes every layer twice, so its
plain run does the same.
"""

import argparse
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from measuring import Figure, in_turns, run
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from tombola.masks import Units
from tombola.masks.in_matrices import MatrixSelection
from tombola.search import Evidence
from tombola.search.calibration import Calibration, LayerWalk
from tombola.search.layerwise import dense_scores, prune_in_order
from tombola.search.wanda import Wanda

EXAMPLES, VOCABULARY = 128, 1000


def options(parser: argparse.ArgumentParser) -> None:
    for name, default in (("hidden", 512), ("layers", 8), ("length", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    torch.manual_seed(0)
    model = random_llama(given.hidden, 2 if given.quick else given.layers, given.length)
    ids = torch.randint(VOCABULARY, (EXAMPLES, given.length))
    for in_order in (False, True):
        turns = in_turns(passes(model, ids, in_order), rounds=3 if given.quick else 6)
        name = "Wanda, layer after layer" if in_order else "Wanda"
        yield turns.ratio(f"{name} ÷ the calibration passes alone", "wanda", "plain", "≤ 1.3")


def random_llama(hidden: int, layers: int, length: int) -> PreTrainedModel:
    config = LlamaConfig(
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        vocab_size=VOCABULARY,
        max_position_embeddings=length,
    )
    return AutoModelForCausalLM.from_config(config).eval()


def batches(ids: torch.Tensor, size: int) -> Iterator[dict[str, Any]]:
    for part in ids.split(size):
        yield {"input_ids": part, "attention_mask": torch.ones_like(part)}


def passes(model: PreTrainedModel, ids: torch.Tensor, in_order: bool) -> dict[str, Callable[[], object]]:
    """The calibration passes alone, and with Wanda. Pruning in order changes the model, so it gets a copy."""
    settings, units = Wanda(sequential=in_order), Units.of(model, "weight")
    evidence = Evidence(0, lambda count: iter(()), examples=lambda count, size: batches(ids, size))

    def plain() -> None:
        walk = LayerWalk(copy.deepcopy(model) if in_order else model, batches(ids, Calibration().batch_size))
        for index in range(len(walk.layers)):
            for _ in walk.run(index) if in_order else ():
                pass
            walk.advance(index)

    def wanda() -> None:
        if in_order:
            prune_in_order(settings, copy.deepcopy(model), units, evidence, MatrixSelection(0.5, "row"))
        else:
            dense_scores(settings, model, units, evidence)

    return {"plain": plain, "wanda": wanda}


if __name__ == "__main__":
    run(__doc__, figures, options)
