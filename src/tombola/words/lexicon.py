"""A lexicon from WordNet and a list of function words: synonyms, antonyms, coarse parts of speech, stop words.

The tables are in `lexicon/` (built by `tools/build_lexicons.py`). There is no tagger: a word has the *set* of its
common parts of speech, and two words agree if their sets intersect.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from tombola.errors import DataError

FOLDER = Path(__file__).parent / "lexicon"

TAGS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}

# WordNet's suffix rules: an inflected form with the first ending may have a lemma with the second.
SUFFIX_RULES = {
    letter: [tuple(rule.split(">")) for rule in rules.split()]
    for letter, rules in {
        "n": "s> ses>s xes>x zes>z ches>ch shes>sh men>man ies>y",
        "v": "s> ies>y es>e es> ed>e ed> ing>e ing>",
        "a": "er> est> er>e est>e",
        "r": "",
    }.items()
}

# Parts of speech of unknown words by their ending, tried in this order; a noun if none fits.
ENDINGS = [
    (("ly",), {"ADV"}),
    (("ing", "ed"), {"VERB", "ADJ"}),
    (("ize", "ise", "ify"), {"VERB"}),
    (("ous", "ful", "able", "ible", "ive", "less", "ish", "ical", "ic", "al", "esque"), {"ADJ"}),
]

RARE = 0.1  # a part of speech with less than this share of a word's tagged occurrences does not count

NOT_STOPPED = {"NUM", "INTJ"}  # function words that an attack may still change
OPEN = frozenset(TAGS.values())
UNIVERSAL = {
    *OPEN, *NOT_STOPPED, "ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "X",
}  # fmt: skip
"""The tags of Universal Dependencies."""
COLUMNS = ["word", "tags", "synonyms"]
"""The header of a user's lexicon file."""


class Lexicon:
    """Synonyms, lemmas, parts of speech and stop words of English."""

    source = "WordNet 3.0 synonyms and parts of speech, own list of stop words"
    """The source, for reports."""

    def synonyms(self, word: str) -> list[str]:
        """Return one-word synonyms in all senses, the most common sense of each lemma first."""
        related = (
            synonym
            for letter, lemma in self._lemmas(word.lower())
            for synonym in self._table[letter][lemma][1].split()
        )
        return [synonym for synonym in dict.fromkeys(related) if synonym != word.lower()]

    def tags(self, word: str) -> frozenset[str]:
        """Return the common coarse parts of speech of a word; a function word has no others."""
        word = word.lower().replace("’", "'")
        if word in self._function_words:
            return self._function_words[word]
        if word.isdigit():
            return frozenset({"NUM"})
        counts: dict[str, int] = {}
        for letter, lemma in self._lemmas(word):
            counts[letter] = counts.get(letter, 0) + self._table[letter][lemma][0]
        if counts:
            least = RARE * sum(counts.values())
            return frozenset(TAGS[letter] for letter, count in counts.items() if count >= least)
        guess = (tags for endings, tags in ENDINGS if word.endswith(endings) and len(word) > 4)
        return frozenset(next(guess, {"NOUN"}))

    def same_part_of_speech(self, word: str, other: str, *, verbs_as_nouns: bool = False) -> bool:
        """Return whether both words can have one part of speech; nouns and verbs may count as one, as in TextFooler."""
        tags, others = self.tags(word), self.tags(other)
        if verbs_as_nouns:
            tags, others = (s - {"VERB"} | {"NOUN"} if "VERB" in s else s for s in (tags, others))
        return not tags.isdisjoint(others)

    def is_stop_word(self, word: str) -> bool:
        """Return whether the word carries grammar rather than content: attacks leave such words alone."""
        tags = self._function_words.get(word.lower().replace("’", "'"), NOT_STOPPED)
        return not tags <= NOT_STOPPED

    def knows(self, word: str) -> bool:
        """Return whether the word, in any inflection, is in the lexicon.

        Of words of one or two letters only function words count: WordNet lists many abbreviations, such as `la`.
        """
        word = word.lower().replace("’", "'")
        return word in self._function_words or (len(word) > 2 and next(self._lemmas(word), None) is not None)

    def are_opposites(self, word: str, other: str) -> bool:
        """Return whether some sense of a word is an antonym of some sense of the other."""
        others = self._groups(other.lower())
        return any(number ^ 1 in others for number in self._groups(word.lower()))

    def _groups(self, word: str) -> frozenset[int]:
        """Return the numbers of the groups of opposites that a word belongs to; the opposite of 2n is 2n + 1."""
        lemmas = {word, *(lemma for _, lemma in self._lemmas(word))}
        return frozenset(number for lemma in lemmas for number in self._antonyms.get(lemma, ()))

    @cached_property
    def _antonyms(self) -> dict[str, list[int]]:
        """By lemma: the numbers of its groups."""
        numbers: dict[str, list[int]] = {}
        for n, pair in enumerate(_rows("antonyms.tsv")):
            for side, words in enumerate(pair):
                for word in words.split():
                    numbers.setdefault(word, []).append(2 * n + side)
        return numbers

    def _lemmas(self, word: str) -> Iterator[tuple[str, str]]:
        """Yield (part of speech, lemma) of every reading: the word itself, irregular forms, suffix rules."""
        for letter, table in self._table.items():
            forms = [word, *self._irregular.get((letter, word), [])]
            forms += [
                word.removesuffix(end) + lemma_end
                for end, lemma_end in SUFFIX_RULES[letter]
                if word.endswith(end) and len(word) > len(end) + 1
            ]
            yield from ((letter, form) for form in dict.fromkeys(forms) if form in table)

    @cached_property
    def _table(self) -> dict[str, dict[str, tuple[int, str]]]:
        """By part of speech and lemma: tagged occurrences, synonyms."""
        table: dict[str, dict[str, tuple[int, str]]] = {letter: {} for letter in TAGS}
        for lemma, letter, count, synonyms in _rows("wordnet.tsv"):
            table[letter][lemma] = (int(count), synonyms)
        return table

    @cached_property
    def _irregular(self) -> dict[tuple[str, str], list[str]]:
        forms: dict[tuple[str, str], list[str]] = {}
        for form, letter, lemma in _rows("irregular.tsv"):
            forms.setdefault((letter, form), []).append(lemma)
        return forms

    @cached_property
    def _function_words(self) -> dict[str, frozenset[str]]:
        tags: dict[str, set[str]] = {}
        for tag, words in _rows("function_words.tsv"):
            for word in words.split():
                tags.setdefault(word, set()).add(tag)
        return {word: frozenset(parts) for word, parts in tags.items()}


class UserLexicon(Lexicon):
    """The words of a user's file, in any language, in exactly the listed forms.

    A word without tags, or not in the file, may be of any open class, so it agrees with every noun, verb, adjective
    and adverb. Words with only other tags are stop words, except numbers and interjections.

    Args:
        words: The parts of speech and synonyms of each lower-case word.
        source: The source, for reports.
    """

    def __init__(self, words: dict[str, tuple[frozenset[str], list[str]]], source: str) -> None:
        self.words, self.source = words, source

    def synonyms(self, word: str) -> list[str]:
        """Return the synonyms of exactly this form."""
        _, synonyms = self.words.get(word.lower(), (OPEN, []))
        return [synonym for synonym in synonyms if synonym != word.lower()]

    def tags(self, word: str) -> frozenset[str]:
        """Return the parts of speech in the file; all open classes if it lists none."""
        tags, _ = self.words.get(word.lower(), (OPEN, []))
        return tags or OPEN

    def knows(self, word: str) -> bool:
        """Return whether exactly this form is in the file."""
        return word.lower() in self.words

    def are_opposites(self, word: str, other: str) -> bool:
        """Return False: a lexicon file lists no antonyms."""
        return False

    def is_stop_word(self, word: str) -> bool:
        """Return whether the file lists the word only with closed-class tags."""
        return not self.tags(word) & (OPEN | NOT_STOPPED)


def read_lexicon(path: str | Path) -> UserLexicon:
    """Read a lexicon from a file of tab-separated columns `word`, `tags` and `synonyms`, one word per line.

    Tags are those of Universal Dependencies, separated by spaces (NOUN VERB ADJ ADV, or DET, ADP, PRON … for words
    that attacks leave alone); synonyms are separated by spaces, most common first. Both may be empty.

    Args:
        path: The file, in UTF-8.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(
            f"{path}: there is no such lexicon. Use a file with the columns {', '.join(COLUMNS)}."
        )
    try:
        head, *lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (UnicodeDecodeError, ValueError):
        raise DataError(f"{path}: a lexicon is UTF-8 text with a header: {', '.join(COLUMNS)}.") from None
    if head.split("\t") != COLUMNS:
        raise DataError(f"{path}:1: the columns of a lexicon are {', '.join(COLUMNS)}, separated by tabs.")
    words: dict[str, tuple[frozenset[str], list[str]]] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        word, tags, synonyms, *more = (
            [*line.split("\t"), "", ""] if line.count("\t") < 2 else line.split("\t")
        )
        if not word.strip() or any(more):
            raise DataError(
                f"{path}:{number}: a line has a word, its tags and its synonyms, separated by tabs."
            )
        key, parts = word.strip().lower(), frozenset(tags.upper().split())
        if unknown := sorted(parts - UNIVERSAL):
            raise DataError(
                f"{path}:{number}: {unknown[0]!r} is not a tag of Universal Dependencies, which are "
                f"{', '.join(sorted(UNIVERSAL))}."
            )
        if key in words:
            raise DataError(
                f"{path}:{number}: {key!r} has a line already: give it one line with all its tags and synonyms."
            )
        words[key] = (parts, synonyms.split())
    if not words:
        raise DataError(f"{path}: contains no words.")
    return UserLexicon(words, path.name)


def is_english(language: str) -> bool:
    """Return whether a language code, such as `en-GB`, means English."""
    return language.partition("-")[0] == "en"


@lru_cache(maxsize=1)
def bundled() -> Lexicon:
    """Return the bundled lexicon, loaded once."""
    return Lexicon()


def _rows(name: str) -> Iterator[list[str]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        yield line.split("\t")
