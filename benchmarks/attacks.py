"""How fast attacks run in lock-step, beside the same attacks one example at a time, and beside the floor.

    TOMBOLA_DATA=... python benchmarks/attacks.py [--model FOLDER] [--task sst2] [-n 100] [--alone 20]

The floor is the bare forward passes of the very rows an attack asked the classifier for, in ideal length-sorted
batches of 64. The rival runs the same generators one example after another, every row padded to 128 tokens, in batches
of 32; it may be given fewer examples, and is compared by the time a query takes. Times are processor time. Without a
fine-tuned --model, a head is fitted to the frozen embedded model's features first; without TOMBOLA_DATA, film reviews
are attacked.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from measuring import Figure, run
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from tombola.attacks import Resources, Tools, attacks
from tombola.attacks.material import Material
from tombola.attacks.report import Example
from tombola.attacks.requests import MODEL, SIMILAR, SIMILARITY
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

    def at_least(self, keys: Sequence[tuple[str, str, float]]) -> list[bool]:
        """Whether cosines reach a threshold, as the SentenceEncoder says."""
        cosines = self.similarities([key[:2] for key in keys])
        return [cosine >= key[2] for cosine, key in zip(cosines, keys, strict=True)]


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


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--attacks", nargs="+", default=["deepwordbug", "pwws", "textfooler"])
    parser.add_argument("--model", type=Path, help="a fine-tuned classifier's folder")
    parser.add_argument("--task", default="sst2" if "TOMBOLA_DATA" in os.environ else "reviews")
    parser.add_argument("-n", type=int, default=100, help="examples to attack")
    parser.add_argument("--alone", type=int, default=20, help="examples that the rival attacks")


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    task = Task.named(given.task)
    train = task.load("train", limit=500 if given.quick else 2000)
    model, tokenizer = classifier(given.model, task, train)
    material = Material.of(task.load("validation"), model.config)
    indices = material.sample(12 if given.quick else given.n, seed=0)
    loading = time.process_time()
    resources = Resources()
    encoder = resources.similarity.model
    resources.neighbours.of("film", 1), resources.lexicon.tags("film")
    yield Figure("loading tables and sentence encoder", time.process_time() - loading, unit="s")
    for name in given.attacks:
        tools = Tools(resources, Random(), unknown=tokenizer.unk_token, mask=tokenizer.mask_token)
        oracles = dict(oracles_of(Scorer(model, tokenizer), resources))
        watches = {kind: Stopwatch(oracle) for kind, oracle in oracles.items()}
        encoded_before = resources.similarity_rows
        start = time.process_time()
        found = attacked(name, material, indices, watches, tools, lanes=128)
        everything = time.process_time() - start
        encoder_rows = resources.similarity_rows - encoded_before
        rows, queries = watches[MODEL].keys, sum(example.num_queries for example in found)
        bare = floor(model, tokenizer, rows)

        few = indices[:: max(1, len(indices) // (4 if given.quick else given.alone))]
        sentences = Padded(encoder, resources.similarity.tokenizer)
        padded = {
            **oracles,
            MODEL: Padded(model, tokenizer).scores,
            SIMILARITY: sentences.similarities,
            SIMILAR: sentences.at_least,
        }
        start = time.process_time()
        alone = attacked(name, material, few, padded, tools, lanes=1)
        rival = (time.process_time() - start) / sum(example.num_queries for example in alone)
        note = f"{len(rows):,} rows, {encoder_rows:,} of the encoder, {everything:.1f} s"
        yield Figure(f"{name}: one at a time, padded ÷ ours", rival * queries / everything, "≥ 3", note=note)
        yield Figure(f"{name}: scoring ÷ the classifier's floor", watches[MODEL].seconds / bare, "≤ 1.15")
        yield Figure(f"{name}: everything ÷ the classifier's floor", everything / bare, "≤ 1.4")


if __name__ == "__main__":
    run(__doc__, figures, options)
