"""Where the words of a text are, and what only looks like a word and is left alone."""

import re
from collections.abc import Iterator

LETTER = "A-Za-zÀ-ÖØ-öø-ʯͰ-ͳͶͷΆΈ-ϿЀ-ҁҊ-ԯ"
"""Latin, Greek and Cyrillic letters. Scripts that combine signs are never cut into letters, so texts in them stay
as they are; so do words with combining marks."""

_GLUE = (
    r"\w\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u109f"
    r"\u200b-\u200d\u2060\ufeff\u00ad"
)

WORD = (
    rf"(?<![{_GLUE}])(?<![^\W\d_]['’])"
    rf"[{LETTER}]+(?:['’](?!s(?![{_GLUE}]))[{LETTER}]+)*"
    rf"(?![{_GLUE}])"
)
"""A run of letters, with the apostrophes inside it. The `'s` of `film's` is no part of the word."""

ADDRESS = r"(?:https?://|www\.)\S+|[^\s@]+@[^\s@]+\.\w+"

DISGUISED = r"(?<![\w@])(?=[A-Za-z]*[@0135])(?=(?:[@0135]*[A-Za-z]){2})[A-Za-z@0135]{3,24}(?![\w@])"
"""Letters and signs that look like letters: `m0vie`, `@mazing`, and `mp3` too."""

PROTECTED = "|".join(
    (
        r"\[[A-Z]+[0-9]*\]|<\|[^\s|>]*\|>|</?[A-Za-z][^<>]{0,200}>",  # special tokens and mark-up
        r"-(?:[LRlr][RSCrsc][Bb])-",  # brackets as the Penn Treebank writes them: -LRB-
        r"&\#?\w+;|\#\d+;(?:(?:s|m|d|t|re|ve|ll)\b)?",  # entities, whole or halved as AG News has them
        r"[@\#]\w+",  # handles and hash tags
        r"[:;=8xX][-'o^]?[()\[\]DPpOo/\\|3](?!\w)",  # emoticons
        r"(?<!\w)['’](?:s|m|d|t|re|ve|ll|em)\b",  # clitics of text that was tokenised: it 's
    )
)
"""What looks like words and is none."""

_SCAN = re.compile(rf"(?:{ADDRESS}|{PROTECTED})|(?P<word>{WORD})")


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each word begins and ends, without addresses, special tokens, numbers and what else is no plain word."""
    for match in _SCAN.finditer(text):
        if match.lastgroup == "word":
            yield match.span()
