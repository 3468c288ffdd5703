"""The probability of a word: its frequency in the training texts and in English, and its neighbours."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

TRAIN = 0.8  # weight of the training texts' frequencies; the rest is the dictionary's
CONTEXT = 100.0  # pseudo-count of a word's own frequency beside a neighbour
LETTERS = 30.0  # letters that may follow any two, each with a pseudo-count of LETTER_FLOOR
LETTER_FLOOR = 0.5

Pairs = Mapping[tuple[str, str], int]


class Language:
    """Frequencies of words and of word pairs.

    Args:
        words: The frequency of each word in the training texts.
        pairs: The frequency of adjacent word pairs in the training texts; may be empty.
        dictionary: The frequency of each word in the language at large; may be empty.
    """

    def __init__(self, words: Mapping[str, int], pairs: Pairs, dictionary: Mapping[str, int]) -> None:
        self.words, self.pairs, self.dictionary = words, pairs, dictionary
        weight = (TRAIN if dictionary else 1.0) if words else 0.0
        self._per_word = weight / max(sum(words.values()), 1)
        self._per_entry = (1 - weight) / max(sum(dictionary.values()), 1)
        self._before: Counter[str] = Counter()
        self._behind: Counter[str] = Counter()
        for (left, right), count in pairs.items():
            self._before[left] += count
            self._behind[right] += count

    def probability(self, word: str) -> float:
        """Return the probability of the word; 0 if it is unknown."""
        return self.words.get(word, 0) * self._per_word + self.dictionary.get(word, 0) * self._per_entry

    def context(self, left: str, word: str, right: str, probability: float) -> float:
        """Return the log ratio of the word's probability between its neighbours to its overall probability."""
        prior = CONTEXT * probability
        ratio = 0.0
        if left in self._before:
            ratio += log(
                (self.pairs.get((left, word), 0) + prior) / (prior + self._before[left] * probability)
            )
        if right in self._behind:
            ratio += log(
                (self.pairs.get((word, right), 0) + prior) / (prior + self._behind[right] * probability)
            )
        return ratio


class Letters:
    """A letter trigram model, which measures how much a string looks like a word of the language.

    Args:
        triples: The frequency of letter triples in words of the language, as counted by `triples_of`.
    """

    def __init__(self, triples: Mapping[str, int]) -> None:
        contexts: Counter[str] = Counter()
        for triple, count in triples.items():
            contexts[triple[:2]] += count
        self._floor = {context: -log(count + LETTERS) for context, count in contexts.items()}
        self._scores = {
            triple: log(count + LETTER_FLOOR) + self._floor[triple[:2]] for triple, count in triples.items()
        }
        self._unseen = log(LETTER_FLOOR)

    def log_probability(self, word: str) -> float:
        """Return the log-probability of the string as a new word."""
        padded = f"  {word} "
        total = 0.0
        for i in range(len(word) + 1):
            triple = padded[i : i + 3]
            score = self._scores.get(triple)
            total += self._unseen + self._floor.get(triple[:2], -log(LETTERS)) if score is None else score
        return total


def triples_of(words: Iterable[str]) -> Counter[str]:
    """Count letter triples in words, with spaces before and after each word."""
    padded = [f"  {word} " for word in words]
    return Counter(word[i : i + 3] for word in padded for i in range(len(word) - 2))
