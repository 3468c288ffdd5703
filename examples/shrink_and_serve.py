"""Draw a ticket of attention heads, cut the removed ones out, and serve the smaller model with plain `pipeline`.

python examples/shrink_and_serve.py
"""

from transformers import pipeline

import tombola
from tombola.shrink import RandomTokens, measure

RECIPE = {
    "name": "heads",
    "model": "minilm",
    "task": "reviews",
    "data": {"train": 320, "evaluation": 200},
    "train": {"epochs": 1, "learning_rate": 1e-4, "batch_size": 8, "max_length": 32},
    "draw": {"sparsity": 0.25},
    "search": {"method": "magnitude", "units": "head"},
}


def main() -> None:
    result = tombola.run(RECIPE)
    ticket = tombola.Ticket.from_pretrained(result.folder / result.cells[0].ticket)
    small = ticket.shrink()
    (before, after), (speedup,) = measure(ticket.model(), small, batch_sizes=(8,), texts=RandomTokens(32))
    print(
        f"{before.parameters:,} → {after.parameters:,} parameters, {speedup[8].ratio:.2f} times as fast "
        f"({speedup[8].low:.2f} to {speedup[8].high:.2f}) on 8 texts of {before.length} tokens"
    )

    small.save_pretrained("runs/heads/small")
    ticket.tokenizer().save_pretrained("runs/heads/small")
    serve = pipeline("text-classification", model="runs/heads/small")  # needs only `import tombola`
    for answer in serve(["a gorgeous, moving film", "dull, slow and far too long"]):
        print(answer)


if __name__ == "__main__":
    main()
