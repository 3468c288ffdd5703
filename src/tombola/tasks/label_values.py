"""Conclude from the values of a label column: classes or numbers, the decimal mark, and the names of the classes."""

from __future__ import annotations

import re
from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Literal
from unicodedata import normalize

from tombola.errors import DataError
from tombola.tasks.column_roles import MOST_CLASSES

FEW_NUMBERS = 12  # integers with at most this many values are classes, others are regression targets
FEW_EXAMPLES = 20  # per label, so that every split is likely to have some

MISSING = {"nan", "null", "n/a", "#n/a"}
"""What other programs write into empty cells."""
SEPARATORS = (",", ";", "|")
"""The usual separators of several labels in one cell."""

DecimalMark = Literal[".", ","]
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")


def kind_of_labels(
    answers: list[str], data: Path, label: str, mark: DecimalMark
) -> Literal["classification", "regression"]:
    """Return whether the values of a label column are classes or numbers; raise if they are neither.

    Args:
        answers: The values.
        data: The data file, for messages.
        label: The name of the column, for messages.
        mark: The decimal mark of the column.
    """
    distinct = set(answers)
    if len(distinct) < 2:
        raise DataError(
            f"{data}: the label column {label} has only one value ({some(sorted(distinct))}): add examples with other "
            "labels, or set another column with --label NAME."
        )
    numbers = {value: number for value in distinct if (number := as_number(value, mark)) is not None}
    if len(numbers) == len(distinct):
        if endless := sorted(value for value, number in numbers.items() if not isfinite(number)):
            raise DataError(
                f"{data}: the label column {label} contains numbers, but also {endless[0]!r}: leave such cells "
                "empty, or correct them."
            )
        whole = all(number == int(number) for number in numbers.values())
        if not whole or len(distinct) > FEW_NUMBERS:
            return "regression"
    if len(distinct) > MOST_CLASSES:
        advice = about_joined_labels(answers) or ["if it is the wrong column, set another with --label NAME"]
        raise DataError(
            f"{data}: the label column {label} has {len(distinct):,} different values, more than {MOST_CLASSES}: "
            f"{advice[0]}."
        )
    return "classification"


def label_names(answers: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the labels in order and, if one has several spellings (Yes, yes), what each stands for.

    An accented letter may also be written as a letter and an accent, which look the same. Whole numbers may be
    written as 1.0, as pandas does if a label is missing somewhere.
    """
    writings: dict[str, Counter[str]] = {}
    numbers = all(as_number(answer) is not None for answer in set(answers))
    for answer in answers:
        folded = _WHOLE.sub(r"\1", answer) if numbers else _folded(answer)
        writings.setdefault(folded, Counter())[answer] += 1
    usual = {
        folded: folded if numbers else counts.most_common(1)[0][0] for folded, counts in writings.items()
    }
    labels = sorted(
        usual.values(), key=lambda name: (as_number(name) is None, as_number(name) or 0.0, name.casefold())
    )
    if all(list(counts) == [usual[folded]] for folded, counts in writings.items()):
        numbered = [str(number) for number in range(len(labels))]
        # "1" must mean the label, not its index.
        ambiguous = set(labels) & set(numbered) and labels != numbered
        return labels, {label: label for label in labels} if ambiguous else {}
    return labels, {writing: usual[folded] for folded, counts in writings.items() for writing in counts}


def missing_values(answers: list[str]) -> list[str]:
    """Return a note on labels that look like empty cells, as other programs write them."""
    counts = Counter(answer for answer in answers if answer.casefold() in MISSING)
    return [
        f"{count:,} {'row has' if count == 1 else 'rows have'} the label {answer}: if that means no label, leave the "
        "cell empty"
        for answer, count in counts.items()
    ]


def rare_labels(answers: list[str]) -> list[str]:
    """Warn about labels that some split may lack."""
    counts = Counter(map(_folded, answers))
    rare = {
        answer: count
        for answer in dict.fromkeys(answers)
        if (count := counts[_folded(answer)]) < FEW_EXAMPLES
    }
    if not rare:
        return []
    told = some([f"{label} ({count})" for label, count in rare.items()])
    return [
        f"fewer than {FEW_EXAMPLES} examples: {told}; some splits may not contain them: add rows, or merge labels"
    ]


def about_joined_labels(answers: list[str]) -> list[str]:
    """Return a note on how to use several labels per text, if values such as `positive,funny` look like that.

    They do if their parts are fewer than the values, or if some of them also are values on their own.
    """
    distinct = set(answers)
    for mark in SEPARATORS:
        joined = {value for value in distinct if mark in value}
        parts = {part.strip() for value in distinct for part in value.split(mark)}
        alone = any(part.strip() in distinct for value in joined for part in value.split(mark))
        if joined and (len(parts) < len(distinct) or (alone and len(parts) == len(distinct))):
            rows = [answer for answer in answers if answer in joined]
            return [
                f"{len(rows):,} {'row seems' if len(rows) == 1 else 'rows seem'} to have several labels, such as "
                f"{rows[0]!r}: for several labels per text, write a task file of kind multi-label, as the page "
                '"Your own data" shows'
            ]
    return []


def decimal_mark(answers: list[str], data: Path, label: str) -> DecimalMark:
    """Return the decimal mark of a column of numbers: a comma if all are numbers with it, such as 3,5.

    Args:
        answers: The values.
        data: The data file, for messages.
        label: The name of the column, for messages.

    Raises:
        DataError: If all values are numbers, but commas may also separate thousands, or there are points too.
    """
    distinct = set(answers)
    with_comma = sorted(value for value in distinct if "," in value)
    numbers = all(
        as_number(value, ",") is not None or _THOUSANDS.fullmatch(value) is not None for value in distinct
    )
    if not with_comma or not numbers:
        return "."
    if all(map(_THOUSANDS.fullmatch, with_comma)) or any("." in value for value in distinct):
        raise DataError(
            f"{data}: the label column {label} contains numbers such as {with_comma[0]!r}, whose comma may be a "
            "decimal mark or a thousands separator: use a decimal point, and no thousands separator."
        )
    if several := [value for value in with_comma if value.count(",") > 1]:
        raise DataError(
            f"{data}: the label column {label} contains numbers with a decimal comma, but also {several[0]!r}, which "
            "has several commas: correct it."
        )
    return ","


def as_number(value: str, mark: DecimalMark = ".") -> float | None:
    """Return a value as a number; None if it is not one, such as 1_2, which Python would read as 12."""
    if "_" in value:
        return None
    try:
        return float(value.replace(mark, "."))
    except ValueError:
        return None


def _folded(answer: str) -> str:
    """Return what the spellings of a label have in common."""
    return normalize("NFC", answer).casefold()


def some(names: list[str]) -> str:
    """Return all names or, of more than eight, the first six and the number of the others."""
    if len(names) <= 8:
        return ", ".join(names)
    return f"{', '.join(names[:6])} and {len(names) - 6:,} more"
