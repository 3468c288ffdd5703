"""Find the words of a text, skipping strings that only look like words."""

import re
from collections.abc import Callable, Iterator

LETTER = "A-Za-zÀ-ÖØ-öø-ʯͰ-ͳͶͷΆΈ-ϿЀ-ҁҊ-ԯḀ-ỿ"
"""Latin, Greek and Cyrillic letters. Scripts with combining signs are never split into letters, so texts in them stay
unchanged; so do words with combining marks."""

_GLUE = (
    r"\w\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u109f"
    r"\u200b-\u200d\u2060\ufeff\u00ad"
)

WORD = (
    rf"(?<![{_GLUE}])(?<![^\W\d_]['’])"
    rf"[{LETTER}]+(?:['’](?!s(?![{_GLUE}]))[{LETTER}]+)*"
    rf"(?![{_GLUE}])"
)
"""A run of letters, with the apostrophes inside it. The `'s` of `film's` is not part of the word."""

URL = r"(?:https?://|www\.)\S+"
EMAIL = r"[^\s@]{1,64}+@[^\s@]+\.\w+"
"""An e-mail address, whose name has at most 64 characters: each letter of a text without spaces may begin one."""

DISGUISED = r"(?<![\w@])(?=[A-Za-z]*[@0135])(?=(?:[@0135]*[A-Za-z]){2})[A-Za-z@0135]{3,24}(?![\w@])"
"""Letters and signs that look like letters: `m0vie`, `@mazing`, and `mp3` too."""

CLITIC = r"(?<!\w)['’](?:s|m|d|t|re|ve|ll|em)\b"
"""A clitic of pre-tokenised text: it 's."""

PROTECTED = "|".join(
    (
        r"\[[A-Z]+[0-9]*\]|<\|[^\s|>]*\|>|</?[A-Za-z][^<>]{0,200}>",  # special tokens and mark-up
        r"-(?:[LRlr][RSCrsc][Bb])-",  # brackets in Penn Treebank style: -LRB-
        r"&\#?\w+;|\#\d+;(?:(?:s|m|d|t|re|ve|ll)\b)?",  # entities, whole or cut in half as in AG News
        r"[@\#]\w+",  # handles and hash tags
        r"[:;=8xX][-'o^]?[()\[\]DPpOo/\\|3](?!\w)",  # emoticons
        CLITIC,
    )
)
"""Strings that look like words but are not."""


def scanner(others: str) -> Callable[[str], Iterator[re.Match[str]]]:
    """Return a function that finds addresses in a text, and matches of `others` between them.

    E-mail addresses are looked for only where there is an @, since their pattern reads on from each letter of a text.
    """
    all_addresses, urls = (re.compile(rf"{address}|{others}") for address in (f"{URL}|{EMAIL}", URL))

    def scan(text: str) -> Iterator[re.Match[str]]:
        return (all_addresses if "@" in text else urls).finditer(text)

    return scan


_scan = scanner(rf"{PROTECTED}|(?P<word>{WORD})")


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each plain word, skipping addresses, special tokens, numbers and the like."""
    for match in _scan(text):
        if match.lastgroup == "word":
            yield match.span()
