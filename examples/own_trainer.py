"""Train with your own `transformers.Trainer` under a mask: one callback keeps removed weights at exactly zero.

python examples/own_trainer.py
"""

from tempfile import TemporaryDirectory

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

import tombola
from tombola.models.finding import find_model

MODEL = find_model("minilm").folder  # or any hub id of a known family


def main() -> None:
    model = AutoModelForSequenceClassification.from_pretrained(MODEL)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    reviews = tombola.Task.named("reviews").load("train", limit=96)
    data = [
        {**tokenizer(text, truncation=True, max_length=32), "labels": label}
        for (text,), label in zip(reviews.texts, reviews.labels, strict=True)
    ]

    units = tombola.Units.of(model, "weight")
    magnitudes = {name: weight.abs() for name, weight in units.matrices(model).items()}
    scores = tombola.Scores.total(units, magnitudes)
    mask = tombola.draw(scores, sparsity=0.5)
    assert mask.contains(tombola.draw(scores, sparsity=0.7))  # draws from the same scores are nested

    with TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder, num_train_epochs=1, per_device_train_batch_size=16, learning_rate=1e-4, weight_decay=0.01,
            report_to=[], save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(
            model,
            settings,
            train_dataset=data,
            processing_class=tokenizer,
            callbacks=[tombola.KeepMask(mask)],
        )
        trainer.train()

    removed = sum(int((~kept).sum()) for kept in mask.tensors(model).values())
    weights = torch.cat([w.detach().flatten() for w in units.matrices(model).values()])
    print(f"{mask}: {removed:,} weights removed, {int((weights == 0).sum()):,} are zero after training")


if __name__ == "__main__":
    main()
