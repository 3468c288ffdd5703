"""Recognise the text and label columns of a table by their names or contents."""

import re
from pathlib import Path
from typing import Any

from tombola.errors import DataError
from tombola.foundations.sequences import listed
from tombola.foundations.yaml12 import dump_yaml
from tombola.words.scripts import HAN

TEXT_NAMES = (
    *(
        "text",
        "sentence",
        "review",
        "content",
        "body",
        "comment",
        "message",
        "document",
        "tweet",
        "utterance",
    ),
    *("question", "query", "title", "headline", "description", "abstract", "input"),
)
PAIRS = (
    *(("premise", "hypothesis"), ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b")),
    *(("question1", "question2"), ("question", "sentence"), ("question", "answer"), ("query", "passage")),
)
LABEL_NAMES = (
    *(
        "label",
        "labels",
        "class",
        "category",
        "target",
        "sentiment",
        "intent",
        "topic",
        "gold_label",
        "output",
    ),
    *("rating", "stars", "score", "y"),
)
_WORD = re.compile(rf"[{HAN}\u3040-\u30ff\u0e00-\u0e7f]|[^\s{HAN}\u3040-\u30ff\u0e00-\u0e7f]+")
"""A word, or a character of a script without spaces: Chinese, Japanese, Thai."""
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?\b|\d\d?([./])\d\d?\1\d{2,4}\b")
SPLITS = {"train", "training", "validation", "valid", "val", "dev", "test", "testing"}
"""The values of a column that says which split a row belongs to."""
MOST_CLASSES = 200  # maximum number of distinct values in a label column
WORTH_JOINING = 0.05  # share of the rows with only one text of a pair


def check_choice(text: tuple[str, ...], label: str | None) -> None:
    """Raise an error if the columns that options name cannot be a text, or a pair of texts, and its label."""
    if len(text) > 2:
        raise DataError(f"--text: takes one column, or two for pairs, not {len(text)} ({', '.join(text)}).")
    if len(set(text)) < len(text):
        raise DataError(f"--text {text[0]}: is given twice; a pair needs two different columns.")
    if label in text:
        raise DataError(f"--label {label}: is also the text column; the label must be another one.")


def check_header(columns: dict[str, list[Any]], label: str, data: Path) -> None:
    """Raise an error if the first line is no header: the name of the label column is then a label itself, or empty."""
    names = {str(value).strip() for value in columns[label]}
    if not label or label in names or label.replace(".", "", 1).isdecimal():
        raise DataError(
            f"{data}: the first line looks like data, not like column names ({', '.join(columns)}): add a first line "
            "such as text,label."
        )


def chosen_columns(
    columns: dict[str, list[Any]], names: tuple[str, ...], option: str, data: Path
) -> list[str]:
    """Return the columns that an option names, after checking that they exist."""
    for name in names:
        if name not in columns:
            raise DataError(
                f"{data}: {option} {name}: there is no such column; the columns are {', '.join(columns)}."
            )
    return list(names)


def find_texts(columns: dict[str, list[Any]], label: str | None, data: Path) -> list[str]:
    """Return columns with the usual names of a pair or a text; else the one column with long, varied strings."""
    filled = _filled(columns)
    lower = {name.casefold(): name for name in filled if name != label}
    for pair in PAIRS:
        if all(name in lower for name in pair):
            return [lower[name] for name in pair]
    for name in TEXT_NAMES:
        if name in lower:
            return [lower[name]]
    texts = [name for name, values in filled.items() if name != label and _is_prose(values)]
    if len(texts) == 1:
        return texts
    reason = f"{listed(texts)} look like text" if texts else "none looks like text"
    raise DataError(
        f"{data}: which column is the text? The columns are {_named(columns)}; {reason}. Set it with --text NAME "
        "(twice for pairs)."
    )


def find_label(columns: dict[str, list[Any]], texts: list[str], data: Path) -> list[str]:
    """Return a column with one of the usual names; else the only one with few distinct values."""
    lower = {name.casefold(): name for name in _filled(columns) if name not in texts}
    for name in LABEL_NAMES:
        if name in lower:
            return [lower[name]]
    candidates = [name for name in lower.values() if _is_label(columns[name])]
    if len(candidates) == 1:
        return candidates
    reason = f"{listed(candidates, 'or')} could be it" if candidates else "none has few distinct values"
    raise DataError(
        f"{data}: which column is the label? The columns are {_named(columns)}; {reason}. Set it with --label NAME."
    )


def _filled(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: values for name, values in columns.items() if not all(map(is_empty, values))}


def _named(columns: dict[str, list[Any]]) -> str:
    filled = _filled(columns)
    return ", ".join(name if name in filled else f"{name} (empty)" for name in columns)


def _is_prose(values: list[Any]) -> bool:
    """Return whether most values are strings of several words, and most of them different."""
    filled = [value for value in values if isinstance(value, str) and value.strip()]
    if len(filled) < 0.5 * len(values):
        return False
    words = sum(len(_WORD.findall(value)) for value in filled) / len(filled)
    return words >= 3 and len(set(filled)) > 0.5 * len(filled)


def _is_label(values: list[Any]) -> bool:
    distinct = {str(value).strip() for value in values if not is_empty(value)}
    if all(map(_DATE.match, distinct)) or _names_splits(values):
        return False
    return 2 <= len(distinct) <= min(MOST_CLASSES, max(2, len(values) // 5))


def about_joining(columns: dict[str, list[Any]], texts: tuple[str, ...], label: str) -> list[str]:
    """Return a note on how to keep the rows that have only one text of a pair, such as no title, if they are many."""
    if len(texts) < 2:
        return []
    filled = [[not is_empty(value) for value in columns[name]] for name in (*texts, label)]
    half = sum(first != second and known for first, second, known in zip(*filled, strict=True))
    if half <= WORTH_JOINING * len(columns[label]):
        return []
    joined = dump_yaml({"text": list(texts), "label": label}, default_flow_style=True, width=1000).strip()
    return [
        f"{half:,} rows have only one of {' and '.join(texts)}: to keep them, join the columns into one text, with "
        f"`text: text` and, under source, `map: {joined}`"
    ]


def about_split_column(columns: dict[str, list[Any]]) -> list[str]:
    """Return a note on how to use the splits that a column names: rows are split by text otherwise."""
    return [
        f"the splits in the column {name} are not used: to use them, write their rows to train.csv, validation.csv and "
        "test.csv in a folder, and pass the folder"
        for name, values in columns.items()
        if _names_splits(values)
    ]


def _names_splits(values: list[Any]) -> bool:
    names = {str(value).strip().casefold() for value in values if not is_empty(value)}
    return len(names) > 1 and names <= SPLITS and bool(names & {"train", "training"})


def is_empty(value: Any) -> bool:
    """Return whether a cell is empty."""
    return value is None or not str(value).strip()
