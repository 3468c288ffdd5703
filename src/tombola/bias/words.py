"""Words and n-grams, the features of bias models."""

import re

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def ngrams_of(text: str, longest: int) -> list[str]:
    """Return the n-grams of a text, up to `longest` words."""
    words = words_of(text)
    return [" ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)]
