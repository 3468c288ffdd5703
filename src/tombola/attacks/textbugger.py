"""TextBugger: bugs that readers overlook, in the most important sentences and words. (Li et al., NDSS 2019)"""

from typing import ClassVar, Literal

from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.constraints import SentenceSimilarity
from tombola.attacks.edits import delete_inside, edited, insert_blank, substitute_look_alike, swap_inside
from tombola.attacks.greedy import by_importance, replace_greedily, swaps
from tombola.attacks.requests import Steps, ask
from tombola.attacks.resources import TABLE_WIDTH
from tombola.attacks.text import Text

EDITS = [insert_blank, delete_inside, swap_inside, substitute_look_alike]


@attacks.register
class TextBugger(Attack):
    """Algorithm 2, the black-box attack: rank sentences by the label's probability, words by deletion, try five bugs.

    A sentence that does not get the label on its own is skipped. The paper gives up at the first bug that takes the
    text too far from the original; here, as in TextAttack's recipe, such a bug is skipped.
    """

    texts_per_word: ClassVar[float] = 4.0
    paper: ClassVar[str] = "Li et al. (2019), TextBugger, NDSS, Algorithms 2 and 3"
    needs: ClassVar[tuple[str, ...]] = ("lexicon", "vectors", "encoder")

    name: Literal["textbugger"] = "textbugger"
    neighbours: int = Field(
        default=5, ge=1, le=TABLE_WIDTH, description="nearest neighbours to try for each word"
    )
    min_similarity: float = Field(
        default=0.8, ge=-1, le=1, description="minimum cosine similarity of the two sentences"
    )

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Rank the sentences and their words, and apply the most harmful of five bugs to each word in turn."""
        content = set(tools.content_words(text))
        order: list[int] = []
        for sentence in (yield from self._telling_sentences(text, label, content)):
            words = [i for i in sentence if i in content]
            order += yield from by_importance(text, label, words, text.delete)

        def bugs(word: str) -> list[str]:
            return edited(word, EDITS, tools.random) + tools.resources.neighbours.of(word, self.neighbours)

        similar = SentenceSimilarity(self.min_similarity)
        return (yield from replace_greedily(text, label, order, swaps(bugs), [similar]))

    def _telling_sentences(self, text: Text, label: int, content: set[int]) -> Steps[list[range]]:
        """Return the sentences that get the label on their own, most confident first."""
        sentences = [sentence for sentence in text.sentences() if content.intersection(sentence)]
        if len(sentences) < 2:
            return sentences
        alone = yield from ask([text.only(sentence) for sentence in sentences])
        surest = sorted(range(len(sentences)), key=lambda i: -alone[i, label])
        return [sentences[i] for i in surest if int(alone[i].argmax()) == label]
