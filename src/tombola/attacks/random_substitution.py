"""Random substitution: the baseline that every guided attack should beat."""

from typing import ClassVar, Literal

from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.requests import Steps, ask
from tombola.attacks.resources import TABLE_WIDTH
from tombola.attacks.text import Text, same_case


@attacks.register
class RandomSubstitution(Attack):
    """Replaces words in random order with a random neighbour, regardless of the model's output."""

    texts_per_word: ClassVar[float] = 0.3
    paper: ClassVar[str] = "a control, not a published attack"
    needs: ClassVar[tuple[str, ...]] = ("lexicon", "vectors")

    name: Literal["random_substitution"] = "random_substitution"
    candidates: int = Field(default=10, ge=1, le=TABLE_WIDTH, description="nearest neighbours to choose from")
    max_changed: float = Field(default=0.4, gt=0, le=1, description="maximum share of words to change")

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Replace words until the label changes or the allowed fraction of words is used up."""
        positions = tools.content_words(text)
        tools.random.shuffle(positions)
        current = text
        for position in positions[: max(1, int(self.max_changed * len(text.words)))]:
            word = text.words[position]
            choices = tools.resources.neighbours.of(word, self.candidates)
            if not choices:
                continue
            current = current.replace(position, same_case(tools.random.choice(choices), like=word))
            if int((yield from ask([current]))[0].argmax()) != label:
                break
        return current
