"""Embedding swap: the attack that the Robust Tickets code ran under BERT-Attack's name. (Zheng et al., ACL 2022)"""

from typing import ClassVar, Literal

from pydantic import Field

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.constraints import PartOfSpeech, SentenceSimilarity
from tombola.attacks.greedy import by_importance, most_similar, replace_greedily, swaps
from tombola.attacks.requests import Steps
from tombola.attacks.resources import TABLE_WIDTH
from tombola.attacks.text import Text


@attacks.register
class EmbeddingSwap(Attack):
    """BAE's search with ten word neighbours instead of a masked LM, and a stricter sentence similarity.

    It uses no masked language model, so it is weaker than BERT-Attack; use it only to compare with published
    robust-ticket numbers. The code's limit on the fraction of changed words was switched off, so this attack has
    none.
    """

    texts_per_word: ClassVar[float] = 4.0
    paper: ClassVar[str] = (
        "Zheng et al. (2022), Robust Lottery Tickets for Pre-trained Language Models, ACL, code"
    )
    needs: ClassVar[tuple[str, ...]] = ("lexicon", "vectors", "encoder")

    name: Literal["embedding_swap"] = "embedding_swap"
    candidates: int = Field(
        default=10, ge=1, le=TABLE_WIDTH, description="nearest neighbours to try for each word"
    )
    min_similarity: float = Field(
        default=0.85, ge=-1, le=1, description="minimum cosine similarity of both texts' windows"
    )
    window: int = Field(default=15, gt=0, description="words around a change whose similarity is measured")

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Rank words by deletion, then replace them with neighbours of the same part of speech."""
        order = yield from by_importance(text, label, tools.content_words(text), text.delete)
        neighbours = tools.resources.neighbours
        return (
            yield from replace_greedily(
                text,
                label,
                order,
                candidates=swaps(lambda word: neighbours.of(word, self.candidates)),
                constraints=[
                    PartOfSpeech(tools.resources.lexicon),
                    SentenceSimilarity(self.min_similarity, "cosine", self.window),
                ],
                choose=most_similar,
            )
        )
