"""An attack: swap the first two words."""

from itertools import pairwise
from typing import ClassVar, Literal

from tombola.attacks.base import Attack, attacks
from tombola.attacks.requests import ask


@attacks.register
class SwapWords(Attack):
    """Swap neighbouring words."""

    paper: ClassVar[str] = "a test"

    name: Literal["swap_words"] = "swap_words"
    most: int = 3

    def perturb(self, text, label, tools):
        positions = text.positions(tools.columns)[: self.most + 1]
        for one, two in pairwise(positions):
            swapped = text.replace(one, text.words[two]).replace(two, text.words[one])
            scores = yield from ask([swapped])
            if int(scores[0].argmax()) != label:
                return swapped
        return text
