"""A task from nothing but a data file: which columns are text and label, which labels there are, how to split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.lines import ending_of
from tombola.tasks.readers import Malformed, open_table
from tombola.tasks.task import Task

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
"""The data files that a task can be made from."""

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
MOST_CLASSES = 200  # distinct values of a label column; a column of more is no label
FEW_NUMBERS = 12  # whole numbers of at most so many values are classes, others are what a regression predicts
VALIDATION, TEST = 0.1, 0.2
LARGEST = 10_000  # examples of a split that is only judged on


@dataclass(frozen=True)
class Inferred:
    """A task that was made from a data file, and what was concluded.

    Attributes:
        task: The task.
        path: Where its file was written, to be looked at and edited.
        notes: What was inferred, a line each.
        new: Whether the file was written now, and not found from an earlier time.
    """

    task: Task
    path: Path
    notes: tuple[str, ...]
    new: bool = True


def task_file_of(data: Path) -> Path:
    """Where the task file of a data file is: beside it."""
    stem = data.name.removesuffix(".gz")
    return data.with_name(f"{Path(stem).stem}.task.yaml")


def infer_task(data: Path, text: tuple[str, ...] = (), label: str | None = None) -> Inferred:
    """Make a task from a data file and write it beside that file. One that is already there is used as it is.

    Args:
        data: A .csv, .tsv, .jsonl, .json or .parquet file.
        text: The column of the text, or two of a pair; recognised if not given.
        label: The column of the label; recognised if not given.

    Raises:
        DataError: If the columns cannot be told, with those that there are and the option that names them.
    """
    if not data.is_file():
        raise DataError(f"{data}: there is no such file.")
    if ending_of(data) not in ENDINGS:
        raise DataError(f"{data}: cannot make a task from {data.suffix!r} files; use {', '.join(ENDINGS)}.")
    path = task_file_of(data)
    if path.is_file() and not text and label is None:
        return Inferred(Task.from_file(path), path, (f"task: {path}, which was there",), new=False)
    columns = _columns(data)
    texts = _chosen(columns, text, "--text", data) or _find_texts(columns, label, data)
    answer = (
        _chosen(columns, (label,) if label else (), "--label", data) or _find_label(columns, texts, data)
    )[0]
    return _written(data, path, columns, tuple(texts), answer)


def _columns(data: Path) -> dict[str, list[Any]]:
    """The values of every column."""
    table = open_table(data, Layout())
    rows = [fields for _, fields in table.rows if not isinstance(fields, Malformed)]
    if not rows:
        raise DataError(f"{data}: there is not a single row.")
    return {name: [row[place] for row in rows] for place, name in enumerate(table.columns)}


def _chosen(columns: dict[str, list[Any]], names: tuple[str, ...], option: str, data: Path) -> list[str]:
    for name in names:
        if name not in columns:
            raise DataError(
                f"{data}: {option} {name}: there is no such column; there are {', '.join(columns)}."
            )
    return list(names)


def _find_texts(columns: dict[str, list[Any]], label: str | None, data: Path) -> list[str]:
    """Columns with the usual names of a pair or of a text; else the one column with long, varied strings."""
    lower = {name.casefold(): name for name in columns if name != label}
    for pair in PAIRS:
        if all(name in lower for name in pair):
            return [lower[name] for name in pair]
    for name in TEXT_NAMES:
        if name in lower:
            return [lower[name]]
    texts = [name for name, values in columns.items() if name != label and _is_prose(values)]
    if len(texts) == 1:
        return texts
    found = f"{' and '.join(texts)} look like text" if texts else "none looks like text"
    raise DataError(
        f"{data}: which column is the text? There are {', '.join(columns)}; {found}. Say it with --text NAME (twice "
        "for pairs)."
    )


def _find_label(columns: dict[str, list[Any]], texts: list[str], data: Path) -> list[str]:
    """A column with one of the usual names; else the only one that repeats few values."""
    lower = {name.casefold(): name for name in columns if name not in texts}
    for name in LABEL_NAMES:
        if name in lower:
            return [lower[name]]
    candidates = [name for name in lower.values() if _is_label(columns[name])]
    if len(candidates) == 1:
        return candidates
    found = f"{' and '.join(candidates)} could be it" if candidates else "none repeats few values"
    raise DataError(
        f"{data}: which column is the label? There are {', '.join(columns)}; {found}. Say it with --label NAME."
    )


def _is_prose(values: list[Any]) -> bool:
    """Whether most values are strings of several words, and most of them different."""
    filled = [value for value in values if isinstance(value, str) and value.strip()]
    if len(filled) < 0.5 * len(values):
        return False
    words = sum(len(value.split()) for value in filled) / len(filled)
    return words >= 3 and len(set(filled)) > 0.5 * len(filled)


def _is_label(values: list[Any]) -> bool:
    distinct = {str(value).strip() for value in values if not _is_empty(value)}
    return 2 <= len(distinct) <= min(MOST_CLASSES, max(2, len(values) // 5))


def _is_empty(value: Any) -> bool:
    return value is None or not str(value).strip()


def _written(
    data: Path, path: Path, columns: dict[str, list[Any]], texts: tuple[str, ...], label: str
) -> Inferred:
    answers = [str(value).strip() for value in columns[label] if not _is_empty(value)]
    kind = _kind_of(answers, data, label)
    names = ["text"] if len(texts) == 1 else ["first", "second"]
    renamed = {
        ours: theirs for ours, theirs in (*zip(names, texts, strict=True), ("label", label)) if ours != theirs
    }
    complete = sum(
        not any(_is_empty(columns[name][row]) for name in (*texts, label))
        for row in range(len(columns[label]))
    )
    source: dict[str, Any] = {"files": {"train": data.name}, "skip_empty": True}
    if renamed:
        source["map"] = renamed
    parts = {"validation": VALIDATION, "test": TEST}
    share = {name: round(min(part, LARGEST / complete), 4) for name, part in parts.items()}
    content: dict[str, Any] = {
        "name": path.name.removesuffix(".task.yaml"),
        "version": 1,
        "about": f"made from {data.name}",
        "kind": kind,
        "text": names[0] if len(names) == 1 else names,
    }
    notes = [f"text: {' and '.join(texts)}", f"label: {label}"]
    if kind == "classification":
        labels, writings = _labels(answers)
        content |= {"labels": labels, "metrics": ["accuracy", "macro_f1"]}
        if writings:
            source["values"] = writings
        most, count = Counter(answers).most_common(1)[0]
        notes.append(
            f"{len(labels)} labels: {_some(labels)}; the commonest, {most}, in {count / len(answers):.0%}"
        )
    else:
        content["metrics"] = ["pearson", "spearman"]
        numbers = sorted(map(float, answers))
        notes.append(f"regression: numbers from {numbers[0]:g} to {numbers[-1]:g}")
    content |= {
        "source": source,
        "holdout": {name: {"of": "train", "share": part, "stratified": True} for name, part in share.items()},
        "reported": "test",
    }
    skipped = len(columns[label]) - complete
    notes.append(
        f"{complete:,} examples"
        + (f"; {skipped:,} rows without text or label are left out" if skipped else "")
    )
    rest = 1 - sum(share.values())
    notes.append(f"split: {rest:.0%} train, {share['validation']:.0%} validation, {share['test']:.0%} test")
    _write(path, content, notes)
    return Inferred(Task.from_file(path), path, tuple(notes))


def _kind_of(answers: list[str], data: Path, label: str) -> Literal["classification", "regression"]:
    distinct = set(answers)
    if len(distinct) < 2:
        raise DataError(f"{data}: the label column {label} has one value only ({_some(sorted(distinct))}).")
    numbers = [_number(value) for value in distinct]
    whole = all(number is not None and number == int(number) for number in numbers)
    if all(number is not None for number in numbers) and (not whole or len(distinct) > FEW_NUMBERS):
        return "regression"
    if len(distinct) > MOST_CLASSES:
        raise DataError(
            f"{data}: the label column {label} has {len(distinct):,} different values, more than {MOST_CLASSES}: is it "
            "another column? Say it with --label NAME."
        )
    return "classification"


def _labels(answers: list[str]) -> tuple[list[str], dict[str, str]]:
    """The labels in order, and where one is written in several ways (Yes, yes), what each stands for."""
    writings: dict[str, Counter[str]] = {}
    for answer in answers:
        writings.setdefault(answer.casefold(), Counter())[answer] += 1
    usual = {folded: counts.most_common(1)[0][0] for folded, counts in writings.items()}
    labels = sorted(
        usual.values(), key=lambda name: (_number(name) is None, _number(name) or 0.0, name.casefold())
    )
    if all(len(counts) == 1 for counts in writings.values()):
        numbered = [str(number) for number in range(len(labels))]
        ambiguous = (
            set(labels) & set(numbered) and labels != numbered
        )  # "1" must mean the label, not its place
        return labels, {label: label for label in labels} if ambiguous else {}
    return labels, {one: usual[folded] for folded, counts in writings.items() for one in counts}


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" … ({len(names)} in all)" if len(names) > 6 else "")


def _write(path: Path, content: dict[str, Any], notes: list[str]) -> None:
    head = "".join(f"# {line}\n" for line in ("Inferred from the data; edit what is wrong.", *notes))
    try:
        path.write_text(head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"{path}: the task file cannot be written beside the data ({error.strerror}): copy the data to a folder "
            "that you can write to."
        ) from None
