"""A defense: words that the training texts do not have are left out."""

from typing import Literal

from tombola.defenses import Defense, FittedDefense, defenses


@defenses.register
class KnownWords(Defense):
    """Leave out words that were never seen."""

    kind: Literal["known_words"] = "known_words"

    def fit(self, texts):
        return Fitted(self, sorted({word for text in texts for word in text.split()}))

    def restore(self, state):
        return Fitted(self, list(state["words"]))


class Fitted(FittedDefense):
    def __init__(self, settings, words):
        self.settings, self.words = settings, words

    def correct(self, text):
        return " ".join(word for word in text.split() if word in set(self.words))

    def parts(self):
        return [{"settings": self.settings.model_dump(), "state": {"words": self.words}}]
