"""Torch-Pruning at the speed of a ticket: the same fine-tuned model, data and training steps, scored the same way.

    pip install torch-pruning
    python benchmarks/against_torch_pruning.py MODEL --task reviews --on test [--speedup 2] [--seed 1] [--output FILE]

MODEL is a fine-tuned BERT classifier. Torch-Pruning removes the same share of heads, neurons and hidden dimensions
everywhere, by first-order Taylor importance, as its own example for BERT does; the share is the smallest that reaches
the speed-up at batch 1 and 32 on one thread. The small model is then trained with the teacher's outputs. It is scored
as it is, and behind the corrector of MODEL if there is one.
"""

import argparse
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import torch
import torch_pruning
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    get_linear_schedule_with_warmup,
)
from transformers.models.bert.modeling_bert import BertSelfAttention

import tombola
from tombola.augmentations.copies import changed_split
from tombola.defenses.tokenizing import defense_of
from tombola.evaluation.evaluate import evaluate_split
from tombola.models.loading import load_tokenizer
from tombola.objectives.distillation import divergence
from tombola.shrink.measuring import forward_pass
from tombola.shrink.texts import TaskTexts
from tombola.shrink.timing import Stopwatch, time_in_turns
from tombola.tasks import Collate, Encoded, Split, Task, collate_of, encode

BATCH = 32
IMPORTANCE_BATCHES = 32
WEIGHT, TEMPERATURE = 0.9, 2.0
SHARES = [round(0.02 * step, 2) for step in range(5, 40)]


def batches(encoded: Encoded, collate: Collate, epoch: int, seed: int) -> Iterator[dict[str, torch.Tensor]]:
    """The examples once, in a random order."""
    generator = torch.Generator().manual_seed(1000 * seed + epoch)
    for members in torch.randperm(len(encoded), generator=generator).split(BATCH):
        yield collate([encoded[index] for index in members.tolist()])


def prune(model: PreTrainedModel, share: float) -> PreTrainedModel:
    """A copy of a model with gradients, less this share of its heads, neurons and hidden dimensions."""
    small = deepcopy(model)
    for old, new in zip(model.parameters(), small.parameters(), strict=True):
        new.grad = None if old.grad is None else old.grad.clone()
    attentions = [module for module in small.modules() if isinstance(module, BertSelfAttention)]
    heads = {
        matrix: attention.num_attention_heads
        for attention in attentions
        for matrix in (attention.query, attention.key, attention.value)
    }
    pruner = torch_pruning.pruner.BasePruner(
        small,
        {
            "input_ids": torch.ones(1, 16, dtype=torch.long),
            "attention_mask": torch.ones(1, 16, dtype=torch.long),
        },
        importance=torch_pruning.importance.GroupTaylorImportance(),
        pruning_ratio=share,
        round_to=8,
        ignored_layers=[small.classifier],
        num_heads=heads,
        prune_num_heads=True,
        prune_head_dims=False,
        head_pruning_ratio=share,
        output_transform=lambda outputs: outputs.logits.sum(),
    )
    pruner.step()
    for attention in attentions:
        attention.num_attention_heads = pruner.num_heads[attention.query]
        attention.all_head_size = attention.query.out_features
        attention.attention_head_size = attention.all_head_size // attention.num_attention_heads
    small.zero_grad(set_to_none=True)
    return small


def speedup(
    dense: PreTrainedModel, small: PreTrainedModel, texts: TaskTexts, rounds: int
) -> dict[int, float]:
    """How many times faster the small model is, at batch 1 and 32, by processor time of one thread."""
    found = {}
    with torch.inference_mode():
        for size in (1, BATCH):
            runs = [forward_pass(dense.eval()), forward_pass(small.eval())]
            timed = time_in_turns(
                runs, texts.batches(dense, size, rounds), rounds=rounds, watch=Stopwatch().for_one_thread()
            )
            found[size] = timed.speedup(1).ratio
    return found


def fit(dense: PreTrainedModel, texts: TaskTexts, wanted: float) -> tuple[float, PreTrainedModel]:
    """The smallest share that reaches the speed-up at both batch sizes."""
    low, high = 0, len(SHARES) - 1
    while low < high:
        middle = (low + high) // 2
        if min(speedup(dense, prune(dense, SHARES[middle]), texts, rounds=15).values()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return SHARES[low], prune(dense, SHARES[low])


def train(
    small: PreTrainedModel,
    teacher: PreTrainedModel,
    encoded: Encoded,
    collate: Collate,
    *,
    epochs: int,
    rate: float,
    seed: int,
) -> None:
    """Train with the labels and the teacher's outputs."""
    torch.manual_seed(seed)
    steps = epochs * -(-len(encoded) // BATCH)
    optimizer = torch.optim.AdamW(small.parameters(), lr=rate, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, int(0.1 * steps), steps)
    small.train()
    teacher.eval()
    for epoch in range(epochs):
        for batch in batches(encoded, collate, epoch, seed):
            labels = batch.pop("labels")
            with torch.no_grad():
                taught = teacher(**batch).logits
            logits = small(**batch).logits
            own = torch.nn.functional.cross_entropy(logits, labels)
            loss = (1 - WEIGHT) * own + WEIGHT * divergence(taught, logits, labels, TEMPERATURE)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(small.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        print(f"epoch {epoch + 1} of {epochs}: loss {loss.item():.3f}", flush=True)


def score(
    model: PreTrainedModel, tokenizer: object, split: Split, n: int, max_length: int
) -> dict[str, float]:
    """Accuracy on clean texts, on texts with typos, and under two attacks."""
    model.eval()
    found = {}
    for name, data in {"clean": split, "typos": changed_split(split, "typos")}.items():
        found[name] = evaluate_split(model, tokenizer, data, max_length=max_length).scores["accuracy"].value
    for recipe in ("deepwordbug", "textfooler"):
        report = tombola.attack(
            model, recipe, tokenizer=tokenizer, examples=split, n=n, max_length=max_length
        )
        found[recipe] = report.summary()["accuracy_under_attack"]
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("model", type=Path)
    options.add_argument("--task", default="sst2")
    options.add_argument("--data", type=Path, help="folder of local data sets")
    options.add_argument("--on", default="validation", help="split to score on")
    options.add_argument("--train", type=int, help="training examples (default: all)")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--max-length", type=int, default=64)
    options.add_argument("--learning-rate", type=float, default=2e-4)
    options.add_argument("--speedup", type=float, default=2.0)
    options.add_argument("--attacked", type=int, default=200, help="attacked examples")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--output", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    task = Task.named(chosen.task)
    tokenizer = load_tokenizer(chosen.model)
    plain = AutoTokenizer.from_pretrained(chosen.model)
    dense = AutoModelForSequenceClassification.from_pretrained(chosen.model, attn_implementation="sdpa")
    data = task.load("train", folder=chosen.data, limit=chosen.train, seed=0)
    held_out = task.load(chosen.on, folder=chosen.data)
    encoded, collate = encode(data, plain, chosen.max_length), collate_of(task, plain)
    for _, batch in zip(range(IMPORTANCE_BATCHES), batches(encoded, collate, 0, chosen.seed), strict=False):
        dense(**batch).loss.backward()
    texts = TaskTexts.of(held_out, plain, chosen.max_length, dense.config)
    share, small = fit(dense, texts, chosen.speedup)
    faster = speedup(dense, small, texts, rounds=45)
    parameters = sum(p.numel() for p in small.parameters())
    print(f"share {share:.0%}, {parameters:,} parameters, speed-up {faster}", flush=True)
    train(small, dense, encoded, collate, epochs=chosen.epochs, rate=chosen.learning_rate, seed=chosen.seed)
    rows = {"torch-pruning": score(small, plain, held_out, chosen.attacked, chosen.max_length)}
    if defense_of(tokenizer) is not None:
        corrected = score(small, tokenizer, held_out, chosen.attacked, chosen.max_length)
        rows["torch-pruning, corrected"] = corrected
    result = {"share": share, "parameters": parameters, "speedup": faster, "seed": chosen.seed, "rows": rows}
    print(json.dumps(result, indent=2))
    if chosen.output:
        chosen.output.write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
