"""A text under attack: words that can be replaced one by one, with everything between them preserved."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from tombola.words.scripts import HAN, JOINERS, MARKS

SENTENCE_END = re.compile(r"[.!?]['\")\]]*\s|[。！？।؟]")
CLITIC = r"(?<!\w)['’](?:s|m|d|t|re|ve|ll)\b"  # "it 's" in pre-tokenised text
_LETTER = rf"[^\W{HAN}][{MARKS}]*"
_RUN = rf"{_LETTER}(?:[{JOINERS}]?{_LETTER})*"
WORD = re.compile(rf"{CLITIC}|[{HAN}]|{_RUN}(?:['’*@-]+{_RUN})*", re.IGNORECASE)


class Text:
    """One or two columns of text, split into words. Immutable: every edit returns a new Text with the same origin.

    Words are numbered across columns, and an edit never renumbers them: a deleted word remains as an empty one, and a
    word split by a space is still one. So positions mean the same in every variant of a text.
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...]  # the strings around the words: one more than the words in each column
    starts: tuple[int, ...]  # index of the first word of each column, then the total number of words
    origin: "Text"
    last: int | None  # the last edited word

    def __init__(self, columns: str | Sequence[str]) -> None:
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
        by_column = [list(WORD.finditer(column)) for column in columns]
        self.words = tuple(match.group() for matches in by_column for match in matches)
        self.gaps = tuple(
            column[end:start]
            for column, matches in zip(columns, by_column, strict=True)
            for end, start in zip(
                [0, *(m.end() for m in matches)], [*(m.start() for m in matches), len(column)], strict=True
            )
        )
        self.starts = tuple(accumulate((len(matches) for matches in by_column), initial=0))
        self.origin = self
        self.last = None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The text as the model reads it."""
        return tuple("".join(piece for piece, _ in self.pieces(c)) for c in range(len(self.starts) - 1))

    def replace(self, position: int, word: str) -> "Text":
        """Return the text with another word at `position`."""
        words = (*self.words[:position], word, *self.words[position + 1 :])
        return self._edited(words, self.gaps, position)

    def delete(self, position: int) -> "Text":
        """Return the text without the word at `position` and one of the two spaces around it."""
        before = position + self.column_of(position)
        left, right = self.gaps[before], self.gaps[before + 1]
        if (not left or left[-1].isspace()) and right[:1].isspace():
            right = right[1:]
        gaps = (*self.gaps[: before + 1], right, *self.gaps[before + 2 :])
        return self._edited((*self.words[:position], "", *self.words[position + 1 :]), gaps, position)

    def column_of(self, position: int) -> int:
        """Return the column of the word at `position`."""
        return next(c for c, end in enumerate(self.starts[1:]) if position < end)

    def positions(self, columns: Collection[int] | None = None) -> list[int]:
        """Return the positions of the words in all columns, or in some."""
        chosen = range(len(self.starts) - 1) if columns is None else sorted(columns)
        return [i for c in chosen for i in range(self.starts[c], self.starts[c + 1])]

    def window(self, position: int, size: int | None = None) -> str:
        """Return the `size` words around `position`, centred as far as its column allows (None: the whole column)."""
        column = self.column_of(position)
        start, end = self.starts[column], self.starts[column + 1]
        if size is None or end - start <= size:
            return self.columns[column]
        first = min(max(position - size // 2, start), end - size)
        inner = self.gaps[first + column + 1 : first + column + size]
        words = self.words[first : first + size]
        return "".join(word + gap for word, gap in zip(words, (*inner, ""), strict=True))

    def column_length(self, position: int) -> int:
        """Return the number of words in the column of `position`."""
        column = self.column_of(position)
        return self.starts[column + 1] - self.starts[column]

    def spans(self, column: int) -> dict[int, tuple[int, int]]:
        """Return where each word begins and ends in the column's string."""
        spans, end = {}, 0
        for i in range(self.starts[column], self.starts[column + 1]):
            start = end + len(self.gaps[i + column])
            end = start + len(self.words[i])
            spans[i] = (start, end)
        return spans

    def sentences(self) -> list[range]:
        """Return the word positions of each sentence, which ends at a full stop and a space, or with its column."""
        ends = set(self.starts)
        for column in range(len(self.starts) - 1):
            for i in range(self.starts[column], self.starts[column + 1]):
                if SENTENCE_END.search(self.gaps[i + column + 1]):
                    ends.add(i + 1)
        bounds = sorted(ends)
        return [range(start, end) for start, end in pairwise(bounds)]

    def only(self, kept: range) -> "Text":
        """Return the text with only these words left in their column; the other column is unchanged."""
        column = self.column_of(kept.start)
        start, end = self.starts[column], self.starts[column + 1]
        words = [w if i in kept or not start <= i < end else "" for i, w in enumerate(self.words)]
        inner = range(kept.start + column + 1, kept.stop + column)
        span = range(start + column, end + column + 1)
        gaps = [gap if i in inner or i not in span else "" for i, gap in enumerate(self.gaps)]
        return self._edited(tuple(words), tuple(gaps), kept.start)

    @property
    def changes(self) -> dict[int, str]:
        """Position → new word, for every word that differs from the original."""
        pairs = zip(self.words, self.origin.words, strict=True)
        return {i: new for i, (new, old) in enumerate(pairs) if new != old}

    @property
    def changed_share(self) -> float:
        """The fraction of changed words."""
        return len(self.changes) / len(self.words) if self.words else 0.0

    def with_changes(self, changes: dict[int, str]) -> "Text":
        """Return the text with several words replaced."""
        edited = self
        for position, word in changes.items():
            edited = edited.replace(position, word)
        return edited

    def pieces(self, column: int, marked: Collection[int] = ()) -> Iterator[tuple[str, bool]]:
        """Yield the column's gaps and words in order, each with whether it is a word in `marked`."""
        start, end = self.starts[column], self.starts[column + 1]
        for i in range(start, end):
            yield self.gaps[i + column], False
            yield self.words[i], i in marked
        yield self.gaps[end + column], False

    def _edited(self, words: tuple[str, ...], gaps: tuple[str, ...], position: int) -> "Text":
        edited = object.__new__(Text)
        edited.words, edited.gaps, edited.starts = words, gaps, self.starts
        edited.origin, edited.last = self.origin, position
        return edited

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __str__(self) -> str:
        return " ".join(self.columns)

    def __repr__(self) -> str:
        return f"Text({' | '.join(self.columns)!r})"


def same_case(word: str, like: str) -> str:
    """Return `word` capitalised like `like`: all letters, the first, or none."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word
