"""What Wanda costs: scoring all layers against the calibration forward passes alone.

    python benchmarks/calibration.py [--hidden 512] [--layers 8] [--length 128] [--pairs 6] [--threads 1]

A random Llama reads 128 examples layer by layer, once plainly and once with Wanda: the sums over all inputs, the scores
of all weights, and with `in order` the pruning of each layer too. Pruning in order passes every layer twice, so its
plain run does the same. Runs alternate, times are processor time, and the ratio is the median over neighbouring pairs,
so that what else the machine does falls on both. The goal is a ratio of at most 1.3.
"""

import argparse
import copy
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel

from tombola.masks import Units
from tombola.masks.in_matrices import Selection
from tombola.search import Evidence
from tombola.search.calibration import Calibration, LayerWalk
from tombola.search.layerwise import dense_scores, prune_in_order
from tombola.search.wanda import Wanda

EXAMPLES, VOCABULARY = 128, 1000


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("hidden", 512), ("layers", 8), ("length", 128), ("pairs", 6), ("threads", 1)):
        options.add_argument(f"--{name}", type=int, default=default)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    model = random_llama(given.hidden, given.layers, given.length)
    ids = torch.randint(VOCABULARY, (EXAMPLES, given.length))
    table = Table(
        title=f"{given.layers} layers of {given.hidden}, {EXAMPLES} examples of {given.length} tokens, "
        f"{given.threads} thread(s)"
    )
    for column in ("Wanda", "passes s", "Wanda s", "ratio", "quartiles"):
        table.add_column(column, justify="right")
    for in_order in (False, True):
        plain, scored = measure(model, ids, given.pairs, in_order)
        ratios = sorted(two / one for one, two in zip(plain, scored, strict=True))
        low, _, high = statistics.quantiles(ratios, n=4)
        table.add_row(
            "in order" if in_order else "dense",
            f"{statistics.median(plain):.2f}",
            f"{statistics.median(scored):.2f}",
            f"{statistics.median(ratios):.3f}",
            f"{low:.3f} to {high:.3f}",
        )
    Console(width=100).print(table)


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


def measure(
    model: PreTrainedModel, ids: torch.Tensor, pairs: int, in_order: bool
) -> tuple[list[float], list[float]]:
    """Seconds of alternating runs, plain and with Wanda; which comes first alternates too."""
    settings = Wanda(sequential=in_order)
    units = Units.of(model, "weight")
    evidence = Evidence(0, lambda count: iter(()), examples=lambda count, size: batches(ids, size))

    def timed(scored: bool) -> float:
        own = copy.deepcopy(model) if in_order else model
        start = time.process_time()
        if not scored:
            walk = LayerWalk(own, batches(ids, Calibration().batch_size))
            for index in range(len(walk.layers)):
                for _ in walk.run(index) if in_order else ():
                    pass
                walk.advance(index)
        elif in_order:
            prune_in_order(settings, own, units, evidence, Selection(0.5, "row"))
        else:
            dense_scores(settings, own, units, evidence)
        return time.process_time() - start

    timed(scored=False), timed(scored=True)
    times: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        for scored in (False, True) if pair % 2 else (True, False):
            times[scored].append(timed(scored))
    return times[False], times[True]


if __name__ == "__main__":
    main()
