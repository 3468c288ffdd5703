"""DeepWordBug: small misspellings in the words that matter. (Gao et al., DLS 2018)"""

from typing import ClassVar, Literal

from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.constraints import MaxEdits
from tombola.attacks.edits import delete, edited, insert, substitute, swap
from tombola.attacks.greedy import by_importance, replace_greedily, substitution
from tombola.attacks.requests import Steps
from tombola.attacks.text import Text

EDITS = [swap, substitute, delete, insert]


@attacks.register
class DeepWordBug(Attack):
    """Algorithm 1 with the Replace-1 score, and at most 30 edited letters.

    The paper applies one of its four transformers to the best-scored words without querying the model again; here, as
    in TextAttack's recipe, the four compete for each word and the search stops at the first success. Every word may
    be changed, including stop words.
    """

    texts_per_word: ClassVar[float] = 2.5
    paper: ClassVar[str] = (
        "Gao et al. (2018), Black-box Generation of Adversarial Text Sequences, Algorithm 1"
    )

    name: Literal["deepwordbug"] = "deepwordbug"
    max_edits: int = Field(default=30, gt=0, description="maximum edit distance to the original")

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Rank words by replacing them with the unknown token, then misspell them in turn."""
        positions = text.positions(tools.columns)
        order = yield from by_importance(text, label, positions, substitution(text, tools.unknown))

        def misspellings(current: Text, position: int) -> list[Text]:
            words = edited(current.words[position], EDITS, tools.random)
            return [current.replace(position, word) for word in words]

        return (yield from replace_greedily(text, label, order, misspellings, [MaxEdits(self.max_edits)]))
