"""PWWS: synonyms from WordNet, in the order of word saliency times effect. (Ren et al., ACL 2019)"""

from typing import ClassVar, Literal

import numpy as np

from tombola.attacks.base import Attack, Tools, attacks
from tombola.attacks.greedy import importance, ranked, substitution
from tombola.attacks.requests import Steps, ask
from tombola.attacks.text import Text, same_case

OPEN_CLASSES = frozenset({"NOUN", "VERB", "ADJ", "ADV"})


@attacks.register
class PWWS(Attack):
    """Algorithm 1. For each word the synonym that lowers the label most is fixed on the original text; the words
    are then replaced in the order of softmax(saliency) · effect until the label changes.

    The paper's second source, named entities of other classes in the training data, is not used: it needs that data.
    """

    texts_per_word: ClassVar[float] = 4.0
    paper: ClassVar[str] = "Ren et al. (2019), Probability Weighted Word Saliency, ACL, Algorithm 1"
    needs: ClassVar[tuple[str, ...]] = ("lexicon",)

    name: Literal["pwws"] = "pwws"

    def perturb(self, text: Text, label: int, tools: Tools) -> Steps[Text]:
        """Find each word's best synonym, weight it, and replace word after word."""
        synonyms = {i: self._synonyms(text, i, tools) for i in tools.content_words(text)}
        positions = [i for i, texts in synonyms.items() if texts]
        original = (yield from ask([text]))[0][label]
        saliency = yield from importance(text, label, positions, substitution(text, tools.unknown))

        candidates = [candidate for i in positions for candidate in synonyms[i]]
        scores = yield from ask(candidates)
        best: dict[int, tuple[float, str]] = {}
        for candidate, score in zip(candidates, scores, strict=True):
            assert candidate.last is not None
            effect, word = original - score[label], candidate.words[candidate.last]
            if candidate.last not in best or effect > best[candidate.last][0]:
                best[candidate.last] = (effect, word)

        current = text
        for position in ranked(positions, softmax(saliency) * np.array([best[i][0] for i in positions])):
            current = current.replace(position, best[position][1])
            scores = yield from ask([current])
            if int(scores[0].argmax()) != label:
                break
        return current

    def _synonyms(self, text: Text, position: int, tools: Tools) -> list[Text]:
        """Return the text with each WordNet synonym of the word, in any of its senses."""
        word, lexicon = text.words[position], tools.resources.lexicon
        if lexicon.tags(word).isdisjoint(OPEN_CLASSES):
            return []
        return [text.replace(position, same_case(synonym, like=word)) for synonym in lexicon.synonyms(word)]


def softmax(values: np.ndarray) -> np.ndarray:
    """Return the softmax of the values."""
    powers = np.exp(values - values.max(initial=0.0))
    shares: np.ndarray = powers / powers.sum()
    return shares
