"""How many times faster `evaluate_split` is than batches of 8 padded to 128 tokens, on the same sentences.

    python benchmarks/evaluation.py [--task hans] [--sentences 400] [--threads 2]

Reads the dev set of SST-2, or of the task that is named, from the folder TOMBOLA_DATA if that is set, else the bundled
film reviews. The goal is 4 times the padded loop, and 7 times on the short pairs of HANS. The last rows show why
`predict` has the token budget it has.
"""

import argparse
import os
from collections.abc import Callable, Iterator

import numpy as np
import torch
from measuring import Figure, in_turns, run
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.predict import BATCH_TOKENS, predict
from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
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


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", default="sst2" if "TOMBOLA_DATA" in os.environ else "reviews")
    parser.add_argument("--sentences", type=int, default=400)


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    folder = find_model("minilm").folder
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    task = Task.named(given.task)
    split = task.load("validation", limit=100 if given.quick else given.sentences)
    encoded, collate = encode(split, tokenizer, 128), Collate(tokenizer)
    np.testing.assert_allclose(predict(model, encoded, collate), padded(model, tokenizer, split), atol=1e-3)

    ways: dict[str, Callable[[], object]] = {
        "padded": lambda: padded(model, tokenizer, split),
        "ours": lambda: evaluate_split(model, tokenizer, split),
    }
    for budget in BUDGETS:
        ways[str(budget)] = lambda budget=budget: predict(model, encoded, collate, batch_tokens=budget)
    turns = in_turns(ways, rounds=2 if given.quick else 6)
    goal = "≥ 7" if given.task == "hans" else "≥ 4"
    yield turns.ratio(f"batches of 8 padded to 128 ÷ evaluate_split, {given.task}", "padded", "ours", goal)
    for budget in BUDGETS:
        chosen = ", the default" if budget == BATCH_TOKENS else ""
        yield turns.ratio(f"the same ÷ predict, {budget} tokens{chosen}", "padded", str(budget))


if __name__ == "__main__":
    run(__doc__, figures, options)
