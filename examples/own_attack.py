"""Write your own attack, which queries the model for its probabilities: python examples/own_attack.py"""

from typing import ClassVar, Literal

import tombola
from tombola.attacks.base import Attack, attacks
from tombola.attacks.requests import ask


@attacks.register
class Shouting(Attack):
    """Repeat the last letter of word after word until the label changes."""

    paper: ClassVar[str] = "an example"
    name: Literal["shouting"] = "shouting"
    letters: int = 3

    def perturb(self, text, label, tools):
        """Change one more word with every query."""
        for position in tools.content_words(text):
            text = text.replace(position, (word := text.words[position]) + self.letters * word[-1])
            if int((yield from ask([text]))[0].argmax()) != label:
                break
        return text


RECIPE = {
    "name": "own-attack",
    "model": "minilm",
    "task": "reviews",
    "data": {"train": 96, "evaluation": 100},
    "train": {"epochs": 1, "learning_rate": 1e-4, "batch_size": 16, "max_length": 24},
    "attack": {"recipes": ["shouting", {"name": "shouting", "letters": 9, "called": "loud"}], "n": 12},
}

if __name__ == "__main__":
    (cell,) = tombola.run(RECIPE).cells
    for name, found in cell.attacks.items():
        print(f"{name}: {found.accuracy_under_attack:.0%} correct, {found.mean_queries:.1f} queries each")
