"""The spelling corrector: a noisy channel from the words of the training texts to the input. (Kernighan et al. 1990)

A string that is not a word of the training texts becomes the word w that maximises P(w | neighbours) · P(string | w),
unless the string is more likely intended: as a dictionary word, or as a new word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import product
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from tombola.defenses.base import FittedDefense
from tombola.defenses.candidates import DeletionIndex
from tombola.defenses.channel import IMPOSSIBLE, log_likelihood
from tombola.defenses.language import Language, Letters, Pairs, triples_of
from tombola.words.english import Dictionary
from tombola.words.scanning import CLITIC, DISGUISED, PROTECTED, WORD, scanner

if TYPE_CHECKING:
    from tombola.defenses.spelling import Spelling

TYPO = log(0.1)  # a word has an error
SPLIT = log(1e-4)  # a word is split by a space
NEW = log(1e-3)  # a word is new
NEW_NAME = log(30.0)  # how much likelier a capitalised word inside a sentence is new
ACRONYM = 4  # maximum length of a word in capitals that counts as an acronym
INFLECTED = log(20.0)  # how much likelier a known word with an ending is new
INFLECTIONS = (
    ("s", ""),
    ("es", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
    ("er", ""),
)
ENDINGS = "sdryn"  # appended to a word, they make another form of it, not a typo, unless they double its last letter
KNOWN = 1.0  # log bonus of a dictionary word for being intended, beyond its frequency
TWO_EDITS_FROM = 6  # minimum length of a string with two errors, unless it is in the dictionary
MOST = 8  # maximum number of candidates weighted by context
MOST_CONTEXT = 12.0  # the most that context may add to a candidate's score
CACHE = 100_000  # strings whose candidates are cached
MOST_ONES = 4  # a string with more 1s is a number or a code; each of them may be an i or an l
_SIGNS = {"@": "a", "0": "o", "1": "il", "3": "e", "5": "s"}

# in any case: the 'S of FILM'S is not part of the word either
_scan = scanner(rf"(?P<disguised>{DISGUISED})|{PROTECTED}|(?i:{CLITIC})|(?P<word>(?i:{WORD}))")
_SENTENCE_END = re.compile(r"[.!?:\"'(\-]\s*$")


class Token(NamedTuple):
    """A word of a text, or a string of letters and signs that may be a word."""

    text: str
    start: int
    end: int
    disguised: bool


def tokens(text: str) -> Iterator[Token]:
    """Yield the words of a text that may be corrected."""
    for match in _scan(text):
        if match.lastgroup is not None:
            start, end = match.span()
            yield Token(text[start:end], start, end, match.lastgroup == "disguised")


def key_of(word: str) -> str:
    """Return the lower-case key of a word, used for counting."""
    return word.lower().replace("’", "'")


Scored = tuple[str, float]


class FittedSpelling(FittedDefense):
    """Corrects spelling.

    Args:
        settings: The settings.
        words: The frequency of each word in the training texts.
        pairs: The frequency of adjacent word pairs in the training texts.
        forms: The spelling of words that are not usually lower-case, such as names.
        dictionary: The frequency of each word in the language at large; None if unknown.
    """

    def __init__(
        self,
        settings: Spelling,
        words: Mapping[str, int],
        pairs: Pairs,
        forms: Mapping[str, str],
        dictionary: Dictionary | None = None,
    ) -> None:
        self.settings = settings
        self.forms = forms
        self.dictionary_fingerprint = dictionary.fingerprint if dictionary else None
        counts = dictionary.counts if dictionary else {}
        self.language = Language(words, pairs, counts)
        self._known = frozenset(
            [word for word, count in words.items() if count >= settings.min_count]
            + [*map(key_of, settings.keep)]
        )
        self._all = self._known.union(words, counts)
        entries = _entries(dictionary) if dictionary else Entries([], Counter())
        added = [word for word in words if word not in counts and _has_only_letters(word)]
        self._vocabulary = [*added, *entries.words]
        self._letters = Letters(entries.triples + triples_of(added))
        self._cache: dict[str, list[Scored]] = {}

    def parts(self) -> list[dict[str, Any]]:
        """Return the settings and the counts."""
        pairs = [[left, right, count] for (left, right), count in self.language.pairs.items()]
        state = {
            "words": dict(self.language.words),
            "pairs": pairs,
            "forms": dict(self.forms),
            "dictionary": self.dictionary_fingerprint,
        }
        return [{"settings": self.settings.model_dump(mode="json"), "state": state}]

    def correct(self, text: str) -> str:
        """Return the text with corrected words; everything else is unchanged, byte for byte."""
        words = list(tokens(text))
        keys = [key_of(token.text) for token in words]
        known = self._known
        parts, end, i, left = [], 0, 0, ""
        while i < len(words):
            token, key = words[i], keys[i]
            right = keys[i + 1] if i + 1 < len(words) else ""
            last = token
            if right and self._joined(text, words[i], words[i + 1], key, right):
                meant, last = key + right, words[i + 1]
            else:
                meant = key if key in known else self._meant(text, token, key, left, right)
            if meant != key:
                parts += [text[end : token.start], in_case_of(token.text, meant, self.forms.get(meant))]
                end = last.end
            left = meant
            i += 1 if last is token else 2
        return "".join([*parts, text[end:]])

    def forget(self) -> None:
        """Clear the cached candidates."""
        self._cache.clear()

    def _meant(self, text: str, token: Token, key: str, left: str, right: str) -> str:
        """Return the intended word of a string; the string itself if that is more likely."""
        if token.disguised:
            return self._undisguised(key)
        if len(key) == 1 or _is_acronym(text, token.text):
            return key
        best, score = key, self._as_it_stands(key) + _name_bonus(text, token)
        mixed = _mixed_case(token.text)
        for word, static in self.candidates(key):
            if static <= score - MOST_CONTEXT:
                break
            if mixed and word not in self.forms and not _swapped_at_start(token.text, word):
                continue
            context = self.language.context(left, word, right, self.language.probability(word))
            total = static + min(context, MOST_CONTEXT)
            if total > score:
                best, score = word, total
        return best

    def _as_it_stands(self, key: str) -> float:
        """Return the log-probability that a string is intended as it is."""
        new = NEW + self._letters.log_probability(key) + (INFLECTED if self._is_inflected(key) else 0.0)
        probability = self.language.probability(key)
        return max(new, log(probability) + KNOWN) if probability else new

    def _is_inflected(self, key: str) -> bool:
        """Return whether the string is a known word with an English ending."""
        return key + "s" in self._all or any(
            key.removesuffix(ending) + base in self._all
            for ending, base in INFLECTIONS
            if key.endswith(ending) and len(key) > len(ending) + 2
        )

    def _joined(self, text: str, token: Token, after: Token, key: str, right: str) -> bool:
        """Return whether two strings are the parts of one word of the training texts."""
        joined = key + right
        if joined not in self.language.words or text[token.end : after.start] != " ":
            return False
        if key in self._known and right in self._known and not self._never_beside(key, right):
            return False
        apart = sum(
            max([self._as_it_stands(part), *(score for _, score in self.candidates(part)[:1])])
            if part not in self._known
            else log(max(self.language.probability(part), 1e-12))
            for part in (key, right)
        )
        return log(self.language.probability(joined)) + SPLIT > apart

    def _never_beside(self, left: str, right: str) -> bool:
        """Return whether two words are never adjacent in the training texts, as far as pairs were kept."""
        return bool(self.language.pairs) and (left, right) not in self.language.pairs

    def _undisguised(self, key: str) -> str:
        """Return the word of the training texts that signs such as 0 and @ disguise."""
        letters = sum(letter.isalpha() for letter in key)
        if letters < (2 if key[0].isalpha() else 3) or key.count("1") > MOST_ONES:
            return key
        variants = map("".join, product(*(_SIGNS.get(letter, letter) for letter in key)))
        known = [
            word for word in variants if word in self.language.words or (len(word) > 4 and word in self._all)
        ]
        return max(known, key=self.language.probability, default=key)

    def candidates(self, key: str) -> list[Scored]:
        """Return the candidate corrections of a string, most likely first, regardless of context."""
        scored = self._cache.get(key)
        if scored is None:
            scored = self._weighed(self._one_edit.near(key), key, 1)
            if not scored and len(key) >= TWO_EDITS_FROM and key not in self.language.dictionary:
                scored = self._weighed(self._two_edits.near(key), key, 2)
            if len(self._cache) >= CACHE:
                self._cache.clear()
            self._cache[key] = scored
        return scored

    def _weighed(self, words: set[str], key: str, edits: int) -> list[Scored]:
        found = [
            (word, likelihood + TYPO + log(self.language.probability(word)))
            for word in words
            if word != key
            and not (key[:-1] == word and key[-1] in ENDINGS and key[-1] != word[-1])
            and (likelihood := log_likelihood(word, key, edits)) > IMPOSSIBLE
        ]
        return sorted(found, key=lambda scored: (-scored[1], scored[0]))[:MOST]

    @cached_property
    def _one_edit(self) -> DeletionIndex:
        return DeletionIndex(self._vocabulary, 1)

    @cached_property
    def _two_edits(self) -> DeletionIndex:
        """Index for two errors, only over longer words of the training texts, since it is large."""
        return DeletionIndex([w for w in self.language.words if len(w) >= TWO_EDITS_FROM - 1], 2)


class Entries(NamedTuple):
    """The words of a dictionary that can be intended, and their letter triples."""

    words: list[str]
    triples: Counter[str]


@lru_cache(maxsize=2)
def _entries(dictionary: Dictionary) -> Entries:
    """Return the entries of a dictionary, counted once per process."""
    words = [word for word in dictionary.counts if _has_only_letters(word)]
    return Entries(words, triples_of(words))


def _has_only_letters(word: str) -> bool:
    return word.replace("'", "").isalpha()


def in_case_of(typed: str, word: str, form: str | None = None) -> str:
    """Return the word capitalised like the string that it replaces; `form` is its usual spelling."""
    letters = [letter for letter in typed if letter.isalpha()]
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return word.upper()
    if form is not None:
        return form
    return word[:1].upper() + word[1:] if any(letter.isupper() for letter in letters[:2]) else word


def _mixed_case(word: str) -> bool:
    """Return whether there are capitals after the first letter, as in McDonald or iTunes, but not everywhere."""
    return not word.isupper() and not word[1:].islower() and len(word) > 2


def _swapped_at_start(typed: str, word: str) -> bool:
    """Return whether the first two letters were swapped with their case: `iFilm` is a name, but `oGod` is Good."""
    return typed[:2].lower() == word[1::-1] and typed[2:] == word[2:]


def _is_acronym(text: str, word: str) -> bool:
    return len(word) <= ACRONYM and word.isupper() and not text.isupper()


def _name_bonus(text: str, token: Token) -> float:
    """Return the log bonus for a new word that is capitalised inside a sentence."""
    if not token.text[0].isupper():
        return 0.0
    return 0.0 if _SENTENCE_END.search(text[max(token.start - 4, 0) : token.start] or ".") else NEW_NAME
