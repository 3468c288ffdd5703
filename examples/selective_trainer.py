"""Use ROSE in your own training script: a `transformers.Trainer` that does not update high-risk weights.

python examples/selective_trainer.py
"""

from tempfile import TemporaryDirectory

from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments

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

    with TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder, num_train_epochs=1, per_device_train_batch_size=16, learning_rate=2e-5, adam_beta2=0.98,
            adam_epsilon=1e-6, weight_decay=0.01, report_to=[], save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = tombola.RoseTrainer(
            model,
            settings,
            selection=tombola.Selection(kind="first", upper=60),  # the 60 % least sensitive to dropout
            train_dataset=data,
            processing_class=tokenizer,
        )
        trainer.train()

    frozen = trainer.freezing().tensors()
    steady = min(frozen, key=lambda tensor: frozen[tensor])
    print(f"{sum(frozen.values()):.0f} of {len(frozen)} tensors were frozen in each step, on average")
    print(f"{steady} was updated most often: in {1 - frozen[steady]:.0%} of the steps")


if __name__ == "__main__":
    main()
