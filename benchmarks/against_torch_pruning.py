"""Torch-Pruning at the speed of a ticket: the same fine-tuned model, data, training and corrector, scored the same way.

    pip install torch-pruning
    python benchmarks/against_torch_pruning.py MODEL --task reviews --on test [--speedup 2] [--seed 1] [--output FILE]

MODEL is a folder with a fine-tuned BERT classifier. Torch-Pruning removes the same share of heads, neurons and hidden
dimensions everywhere, by first-order Taylor importance, as its own example for BERT does; the share is the smallest
that reaches the speed-up at batch 1 and 32 on one thread, the corrector's time included. The small model then gets the
training of `tombola compress`: distillation of outputs and hidden states, and typos in half of the texts, behind a
corrector that was fitted to the training texts. So only the choice of what to remove differs.
"""

import argparse
import json
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch_pruning
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel
from transformers.models.bert.modeling_bert import BertSelfAttention

import tombola
from tombola.attacks.neighbours import bundled_words
from tombola.augmentations.augmenter import Augmenter, AugmentSettings
from tombola.augmentations.copies import changed_split
from tombola.augmentations.live import LiveTexts
from tombola.augmentations.typos import Typos
from tombola.defenses import Spelling, Unicode, fit_defenses
from tombola.defenses.tokenizing import defended
from tombola.evaluation.evaluate import evaluate_split
from tombola.objectives.distillation import Distill
from tombola.shrink.latency import time_shares
from tombola.shrink.texts import TaskTexts
from tombola.tasks import Split, Task, collate_of, encode
from tombola.training.run import train
from tombola.training.settings import TrainSettings

SIZES = (1, 32)
IMPORTANCE_BATCHES = 32
SHARES = [round(0.02 * step, 2) for step in range(5, 40)]


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
    small.config.hidden_size = small.bert.embeddings.word_embeddings.embedding_dim
    small.zero_grad(set_to_none=True)
    return small


def speedups(dense: PreTrainedModel, small: PreTrainedModel, texts: TaskTexts, rounds: int) -> list[float]:
    """How many times faster the small model is at each batch size, by processor time of one thread."""
    timed = time_shares(dense, [small], texts, SIZES, threads=1, rounds=rounds)
    return [1 / shares[0] for _, shares in timed.values()]


def fit(dense: PreTrainedModel, texts: TaskTexts, wanted: float) -> tuple[float, PreTrainedModel]:
    """The smallest share that reaches the speed-up at every batch size."""
    low, high = 0, len(SHARES) - 1
    while low < high:
        middle = (low + high) // 2
        if min(speedups(dense, prune(dense, SHARES[middle]), texts, rounds=15)) >= wanted:
            high = middle
        else:
            low = middle + 1
    return SHARES[low], prune(dense, SHARES[low])


def score(
    model: PreTrainedModel, tokenizer: object, split: Split, n: int, max_length: int
) -> dict[str, float]:
    """Accuracy on clean texts, on texts with typos, and under two attacks."""
    model.eval()
    found = {}
    for name, data in {"clean": split, "typos": changed_split(split, "typos", bundled_words())}.items():
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
    options.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options.add_argument("--speedup", type=float, default=2.0)
    options.add_argument("--attacked", type=int, default=200, help="attacked examples")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--output", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    task = Task.named(chosen.task)
    dense = AutoModelForSequenceClassification.from_pretrained(chosen.model, attn_implementation="sdpa")
    data = task.load("train", folder=chosen.data, limit=chosen.train, seed=0)
    held_out = task.load(chosen.on, folder=chosen.data)
    defense = fit_defenses([Unicode(), Spelling()], [text for texts in data.texts for text in texts])
    tokenizer = defended(AutoTokenizer.from_pretrained(chosen.model), defense)
    encoded, collate = encode(data, tokenizer, chosen.max_length), collate_of(task, tokenizer)
    settings = TrainSettings(
        epochs=chosen.epochs,
        learning_rate=chosen.learning_rate,
        warmup=0.1,
        max_length=chosen.max_length,
        distill=Distill(hidden=1.0),
        augment=AugmentSettings(of=(Typos(),), share=0.5),
    )
    order = torch.randperm(len(encoded), generator=torch.Generator().manual_seed(chosen.seed))
    for members in order.split(settings.batch_size)[:IMPORTANCE_BATCHES]:
        dense(**collate([encoded[index] for index in members.tolist()])).loss.backward()
    texts = TaskTexts.of(held_out, tokenizer, chosen.max_length, dense.config)
    share, small = fit(dense, texts, chosen.speedup)
    dense.zero_grad(set_to_none=True)
    faster = dict(zip(SIZES, speedups(dense, small, texts, rounds=45), strict=True))
    parameters = sum(p.numel() for p in small.parameters())
    print(f"share {share:.0%}, {parameters:,} parameters, speed-up {faster}", flush=True)
    augmenter = Augmenter(settings.augment, bundled_words(), chosen.seed)
    with TemporaryDirectory() as folder:
        log = train(
            small,
            LiveTexts.of(encoded, data, tokenizer, chosen.max_length, augmenter),
            settings,
            collate=collate,
            seed=chosen.seed,
            precision=chosen.precision,
            folder=Path(folder),
            teacher=dense,
        )
    result = {
        "share": share,
        "parameters": parameters,
        "speedup": faster,
        "seed": chosen.seed,
        "steps": log.steps,
        **score(small, tokenizer, held_out, chosen.attacked, chosen.max_length),
    }
    print(json.dumps(result, indent=2))
    if chosen.output:
        chosen.output.write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
