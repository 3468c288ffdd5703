"""How fast attacks run in lock-step, beside the same attacks one example at a time, and beside the floor.

    TOMBOLA_DATA=... python benchmarks/attacks.py [--model FOLDER] [--task sst2] [-n 100] [--alone 20]

The floor is the bare forward passes of the very rows an attack asked for, in ideal length-sorted batches of 64:
of the classifier (scoring), and of classifier and sentence encoder (everything). The rival runs the same generators
one example after another, every row padded to 128 tokens, in batches of 32; it may be given fewer examples, and
is compared by the time a query takes. Times are processor time on one thread, so that a busy machine does not
blur them. Without a fine-tuned --model, a head is fitted to the frozen embedded model's features first.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from tombola.attacks import Resources, Tools, attacks
from tombola.attacks.material import Material
from tombola.attacks.report import Example
from tombola.attacks.scorer import Scorer, probabilities, tokenize
from tombola.attacks.trial import attack_examples, oracles_of
from tombola.evaluation.predict import predict
from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.models.loading import load_tokenizer
from tombola.tasks import Collate, Split, Task, encode

MAX_LENGTH = 128


class Stopwatch:
    """Wraps an oracle: how long its calls took, and what it was asked."""

    def __init__(self, oracle: Callable[[Any], Any]) -> None:
        self.oracle, self.seconds, self.keys = oracle, 0.0, []

    def __call__(self, keys: Sequence[Any]) -> Any:
        """The oracle's answers."""
        start = time.process_time()
        answers = self.oracle(keys)
        self.seconds += time.process_time() - start
        self.keys += keys
        return answers


class Padded:
    """The rival's way of scoring: every row padded to the maximum, 32 rows a batch."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = model, tokenizer

    def forward(self, texts: Sequence[tuple[str, ...]]) -> Any:
        """The inputs and the model's output."""
        columns = [list(column) for column in zip(*texts, strict=True)]
        inputs = self.tokenizer(
            *columns, truncation=True, padding="max_length", max_length=MAX_LENGTH, return_tensors="pt"
        )
        return inputs, self.model(**inputs)

    @torch.inference_mode()
    def scores(self, texts: Sequence[tuple[str, ...]]) -> np.ndarray:
        """Probabilities, as the Scorer gives them."""
        parts = [self.forward(texts[i : i + 32])[1].logits for i in range(0, len(texts), 32)]
        return probabilities(torch.cat(parts).double().numpy())

    @torch.inference_mode()
    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Cosines, as the SentenceEncoder gives them."""
        texts = [(text,) for pair in pairs for text in pair]
        vectors = []
        for i in range(0, len(texts), 32):
            inputs, output = self.forward(texts[i : i + 32])
            real = inputs["attention_mask"].unsqueeze(-1)
            vectors.append((output.last_hidden_state * real).sum(1) / real.sum(1))
        unit = torch.nn.functional.normalize(torch.cat(vectors), dim=-1)
        return (unit[::2] * unit[1::2]).sum(1).tolist()


def floor(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[tuple[str, ...]]
) -> float:
    """Seconds of nothing but the forward passes of these rows, sorted by length, 64 a batch."""
    rows = sorted(tokenize(tokenizer, texts, MAX_LENGTH), key=lambda row: len(row["input_ids"]))
    collate = Collate(tokenizer)
    batches = [collate(rows[i : i + 64]) for i in range(0, len(rows), 64)]
    start = time.process_time()
    with torch.inference_mode():
        for batch in batches:
            model(**batch)
    return time.process_time() - start


def classifier(folder: Path | None, task: Task, train: Split) -> Any:
    """A fine-tuned model from its folder, or the embedded one with a head fitted to its pooled features."""
    start = folder or find_model("minilm").folder
    with quiet():
        model = AutoModelForSequenceClassification.from_pretrained(start, num_labels=task.num_labels).eval()
    tokenizer = load_tokenizer(start)
    if folder is not None:
        return model, tokenizer
    head, model.classifier = model.classifier, torch.nn.Identity()
    features = predict(model, encode(train, tokenizer, MAX_LENGTH), Collate(tokenizer))
    fitted = LogisticRegression(max_iter=2000, C=10).fit(features, train.labels)
    weight, bias = (np.concatenate([-x, x]) for x in (fitted.coef_, fitted.intercept_))
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(weight))
        head.bias.copy_(torch.from_numpy(bias))
    model.classifier = head
    return model, tokenizer


def attacked(
    name: str, material: Material, indices: list[int], oracles: Any, tools: Tools, lanes: int
) -> list[Example]:
    return list(attack_examples(attacks[name](), material, indices, oracles, tools, lanes=lanes))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attacks", nargs="+", default=["deepwordbug", "pwws", "textfooler"])
    parser.add_argument("--model", type=Path, help="a fine-tuned classifier's folder")
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--data", type=Path, help="data folder, if not TOMBOLA_DATA")
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--alone", type=int, default=20, help="examples that the rival attacks")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    task = Task.named(arguments.task)
    train = task.load("train", arguments.data, limit=2000)
    model, tokenizer = classifier(arguments.model, task, train)
    material = Material.of(task.load("validation", arguments.data), model.config)
    indices = material.sample(arguments.n, seed=0)
    loading = time.perf_counter()
    resources = Resources()
    encoder, _, _ = (
        resources.similarity.model,
        resources.neighbours.of("film", 1),
        resources.lexicon.tags("film"),
    )
    loading = time.perf_counter() - loading

    table = Table(
        "attack",
        "queries",
        "rows",
        "encoder rows",
        "s",
        "× alone, padded",
        "scoring / floor",
        "all / floor",
        "all / floor without encoder",
        "AUA",
        title=f"{arguments.n} examples of {arguments.task}; tables and encoder loaded in {loading:.1f} s",
    )
    for name in arguments.attacks:
        tools = Tools(resources, Random(), unknown=tokenizer.unk_token, mask=tokenizer.mask_token)
        oracles = dict(oracles_of(Scorer(model, tokenizer), resources))
        watches = {kind: Stopwatch(oracle) for kind, oracle in oracles.items()}
        encoded_before = resources.similarity_rows
        start = time.process_time()
        found = attacked(name, material, indices, watches, tools, lanes=128)
        everything = time.process_time() - start
        encoder_rows = resources.similarity_rows - encoded_before

        rows = watches["model"].keys
        bare = floor(model, tokenizer, rows)
        texts = list(dict.fromkeys(text for pair in watches["similarity"].keys for text in pair))
        bare_encoder = (
            floor(encoder, resources.similarity.tokenizer, [(text,) for text in texts]) if texts else 0.0
        )

        few = indices[:: max(1, len(indices) // arguments.alone)]
        padded = {
            **oracles,
            "model": Padded(model, tokenizer).scores,
            "similarity": Padded(encoder, resources.similarity.tokenizer).similarities,
        }
        start = time.process_time()
        alone = attacked(name, material, few, padded, tools, lanes=1)
        rival = (time.process_time() - start) / sum(example.num_queries for example in alone)

        queries = sum(example.num_queries for example in found)
        table.add_row(
            name,
            f"{queries / len(found):.0f}",
            str(len(rows)),
            str(encoder_rows),
            f"{everything:.1f}",
            f"{rival * queries / everything:.1f}",
            f"{watches['model'].seconds / bare:.2f}",
            f"{everything / (bare + bare_encoder):.2f}",
            f"{everything / bare:.2f}",
            f"{sum(example.result_type == 'Failed' for example in found) / len(found):.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
