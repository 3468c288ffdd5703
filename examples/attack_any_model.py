"""Attack any transformers classifier in memory, print texts that fool it, and save the report.

python examples/attack_any_model.py
"""

import tombola

RECIPE = {
    "name": "victim",
    "model": "minilm",
    "task": "reviews",
    "data": {"train": 320, "evaluation": 200},
    "train": {"epochs": 1, "learning_rate": 1e-4, "batch_size": 8, "max_length": 32},
    "draw": {"sparsity": 0.1},
    "search": {"method": "magnitude"},
}


def main() -> None:
    ticket = tombola.Ticket.from_pretrained(_ticket(tombola.run(RECIPE)))
    model, tokenizer = ticket.model(), ticket.tokenizer()  # or any classifier and its tokenizer
    reviews = tombola.Task.named("reviews").load("test")

    report = tombola.attack(
        model, "deepwordbug", tokenizer=tokenizer, examples=reviews, n=12, seed=0, max_length=32
    )

    found = report.summary()
    low, high = found["accuracy_under_attack_interval"]
    print(
        f"{found['clean_accuracy']:.0%} correct before the attack, {found['accuracy_under_attack']:.0%} after it "
        f"({low:.0%} to {high:.0%}), {found['mean_queries']:.0f} queries each"
    )
    for example in report.of("Successful")[:3]:
        print("-", example.original_text, "\n+", example.perturbed_text)
    print("written:", report.save("attacks/example"))


def _ticket(result: tombola.Result) -> str:
    return str(result.folder / result.cells[0].ticket)


if __name__ == "__main__":
    main()
