"""TextFooler: replace important words with their nearest neighbours in a synonym space. (Jin et al., AAAI 2020)"""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.constraints import PartOfSpeech, SentenceSimilarity
from tombola.attacks.greedy import most_similar, ranked, replace_greedily, swaps
from tombola.attacks.requests import Steps, ask
from tombola.attacks.resources import TABLE_WIDTH
from tombola.attacks.text import Text


@attacks.register
class TextFooler(Attack):
    """Algorithm 1, with the numbers of the authors' code, which are also TextAttack's.

    The authors' similarity threshold of 0.5 is an angle in radians; as 1 − angle / π it is 0.8408. Stop words, which
    the paper drops after ranking, are not queried at all.
    """

    texts_per_word: ClassVar[float] = 7.0
    paper: ClassVar[str] = "Jin et al. (2020), Is BERT Really Robust?, AAAI, Algorithm 1"
    needs: ClassVar[tuple[str, ...]] = ("lexicon", "vectors", "encoder")

    name: Literal["textfooler"] = "textfooler"
    candidates: int = Field(
        default=50, ge=1, le=TABLE_WIDTH, description="nearest neighbours to try for each word"
    )
    min_cosine: float = Field(
        default=0.5, ge=-1, le=1, description="minimum cosine similarity of a word and its neighbour"
    )
    min_similarity: float = Field(
        default=0.840845057,
        ge=0,
        le=1,
        description="minimum similarity of both texts' windows, as 1 − angle / π",
    )
    window: int = Field(default=15, gt=0, description="words around a change whose similarity is measured")

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Rank words by deletion, then replace them with synonyms; of several successes take the most similar."""
        positions = tools.content_words(text)
        order = ranked(positions, (yield from self._importance(text, label, positions)))
        neighbours = tools.resources.neighbours
        return (
            yield from replace_greedily(
                text,
                label,
                order,
                candidates=swaps(lambda word: neighbours.of(word, self.candidates, at_least=self.min_cosine)),
                constraints=[
                    PartOfSpeech(tools.resources.lexicon),
                    SentenceSimilarity(
                        self.min_similarity, "angular", self.window, spare_short=True, to="current"
                    ),
                ],
                choose=most_similar,
            )
        )

    def _importance(self, text: Text, label: int, positions: list[int]) -> Steps[np.ndarray]:
        """Return the label's loss without each word plus, if another label wins, that label's gain (eq. 2)."""
        original = (yield from ask([text]))[0]
        without = yield from ask([text.delete(i) for i in positions])
        winners = [int(row.argmax()) for row in without]
        return np.array(
            [
                original[label] - row[label] + (row[won] - original[won] if won != label else 0.0)
                for row, won in zip(without, winners, strict=True)
            ]
        )
