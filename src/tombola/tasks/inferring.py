"""Infer a task from a data file: its text and label columns, its labels, and its splits."""

from __future__ import annotations

import glob
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tombola.errors import DataError
from tombola.foundations.settings import checked
from tombola.tasks.column_roles import (
    about_joining,
    about_split_column,
    check_choice,
    check_header,
    chosen_columns,
    find_label,
    find_texts,
    is_empty,
)
from tombola.tasks.data_columns import answers_of, columns_of, layout_of, other_splits
from tombola.tasks.data_files import ENDINGS as ENDINGS
from tombola.tasks.data_files import task_file_of as task_file_of
from tombola.tasks.data_files import task_name_of, train_file_of
from tombola.tasks.label_values import (
    about_joined_labels,
    decimal_mark,
    kind_of_labels,
    label_names,
    missing_values,
    rare_labels,
    some,
)
from tombola.tasks.languages import ENGLISH, recognised_language
from tombola.tasks.lines import ending_of
from tombola.tasks.readers import USUAL
from tombola.tasks.task import Task
from tombola.tasks.task_file import task_file_text, write_task_file

VALIDATION, TEST = 0.1, 0.2
LARGEST = 10_000  # examples of an evaluation split


@dataclass(frozen=True)
class Inferred:
    """A task inferred from a data file, and the conclusions.

    Attributes:
        task: The task.
        path: The task file, for review and editing.
        notes: The conclusions, one per line.
        new: Whether the file was written now rather than found.
    """

    task: Task
    path: Path
    notes: tuple[str, ...]
    new: bool = True


def infer_task(data: Path, text: tuple[str, ...] = (), label: str | None = None) -> Inferred:
    """Infer a task from a data file and write it next to that file. An existing task file is used unchanged.

    If the arguments name other columns than an existing task file, the file is replaced unless someone has edited it.

    Args:
        data: A .csv, .tsv, .jsonl, .json or .parquet file; or a folder with such a file called train and, if there are
            any, validation and test.
        text: The column of the text, or two of a pair; recognised if not given.
        label: The column of the label; recognised if not given.

    Raises:
        DataError: If the columns are not recognised; the message lists them and the option that names them. Also if
            the existing task file reads other data.
    """
    data = _data_file(data)
    path = task_file_of(data)
    if path.is_file():
        known = Task.from_file(path)
        _check_reads(known, data, path)
        texts = tuple(" ".join(known.source.map.get(name, [name])) for name in known.text)
        answer = " ".join(known.source.map.get("label", ["label"]))
        if text in ((), texts) and label in (None, answer):
            return Inferred(known, path, (f"task: {path}, which already existed",), new=False)
        if not _is_unedited(data, texts, answer, path):
            raise DataError(
                f"{path}: reads other columns ({', '.join((*texts, answer))}) and has been edited: change the columns "
                "there, or delete the file."
            )
    return _infer(data, text, label, path)


def _check_reads(task: Task, data: Path, path: Path) -> None:
    """Raise an error if a task file reads other data: files that differ only in their suffix share its name."""
    names = [name for layout in task.source.layouts for files in layout.files.values() for name in files]
    found = [file for name in names for end in ("", ".gz") for file in path.parent.glob(name + end)]
    if data.resolve() not in (file.resolve() for file in found):
        raise DataError(
            f"{path}: is the task file of {', '.join(dict.fromkeys(names))}, not of {data.name}: rename {data.name}, "
            "or pass the task file instead to use the data that it lists."
        )


def _is_unedited(data: Path, texts: tuple[str, ...], label: str, path: Path) -> bool:
    """Return whether a task file is just as Tombola writes it for the columns that it names."""
    try:
        content, notes = _conclude(data, texts, label, path)
        return path.read_text(encoding="utf-8") == task_file_text(path.name, content, notes)
    except (DataError, OSError, UnicodeDecodeError):
        return False


def init_task(
    data: Path,
    text: tuple[str, ...] = (),
    label: str | None = None,
    path: Path | None = None,
    *,
    replace: bool = False,
    language: str | None = None,
) -> Inferred:
    """Infer a task from a data file and write it, unless the task file exists.

    Args:
        data: A .csv, .tsv, .jsonl, .json or .parquet file; or a folder with such a file called train and, if there are
            any, validation and test.
        text: The column of the text, or two of a pair; recognised if not given.
        label: The column of the label; recognised if not given.
        path: The task file, in the folder of the data or above it; by default next to the data.
        replace: Whether to overwrite an existing task file.
        language: The language of the texts, such as `de`; by default English, or `und` (unknown) if most words are not.

    Raises:
        DataError: If the columns are not recognised, or the task file exists.
    """
    data = _data_file(data)
    path = path or task_file_of(data)
    if path.suffix not in (".yaml", ".yml"):
        raise DataError(f"{path}: the name of a task file must end in .yaml.")
    if path.exists() and not replace:
        raise DataError(f"{path} already exists: edit it, choose another name with -o, or add --force.")
    return _infer(data, text, label, path, language)


def _data_file(data: Path) -> Path:
    if data.is_dir():
        return train_file_of(data)
    if not data.is_file():
        raise DataError(f"{data}: there is no such file.")
    if ending_of(data) not in ENDINGS:
        raise DataError(f"{data}: cannot make a task from {data.suffix!r} files; use {', '.join(ENDINGS)}.")
    return data


def _infer(
    data: Path, text: tuple[str, ...], label: str | None, path: Path, language: str | None = None
) -> Inferred:
    content, notes = _conclude(data, text, label, path, language)
    checked(Task, content, where=f"{path}: task")  # before an existing file is replaced
    write_task_file(path, content, notes)
    return Inferred(Task.from_file(path), path, tuple(notes))


def _conclude(
    data: Path, text: tuple[str, ...], label: str | None, path: Path, language: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return the content of the task file, and the conclusions."""
    layout = layout_of(data)
    columns, notes = columns_of(data, layout)
    check_choice(text, label)
    texts = chosen_columns(columns, text, "--text", data) or find_texts(columns, label, data)
    if label is None:
        (answer,) = find_label(columns, texts, data)
        if ending_of(data) in USUAL:
            check_header(columns, answer, data)
    else:
        (answer,) = chosen_columns(columns, (label,), "--label", data)
    others, notes_on_files = other_splits(data, layout, (*texts, answer))
    notes += notes_on_files
    files = {"train": data} | {split: file for split, (file, _) in others.items()}
    places = {split: _place_of(file, path) for split, file in files.items()}
    source = {"files": places, **layout.model_dump(exclude_defaults=True)}
    if language is None:
        read = [str(value) for name in texts for value in columns[name] if not is_empty(value)]
        language, language_notes = recognised_language(read)
        notes += language_notes
    return _content(data, path, columns, tuple(texts), answer, source, notes, language, others)


def _place_of(data: Path, path: Path) -> str:
    """Return the data file's path relative to the task file's folder."""
    try:
        place = data.resolve().relative_to(path.parent.resolve())
    except ValueError:
        raise DataError(
            f"{path}: a task file must be in the folder of its data, or in one above it: write it to {data.parent}, "
            "or move the data."
        ) from None
    return glob.escape(place.as_posix())


def _content(
    data: Path,
    path: Path,
    columns: dict[str, list[Any]],
    texts: tuple[str, ...],
    label: str,
    source: dict[str, Any],
    unusual: list[str],
    language: str,
    others: dict[str, tuple[Path, list[str]]],
) -> tuple[dict[str, Any], list[str]]:
    if any(isinstance(value, dict) for value in columns[label]):
        raise DataError(
            f"{data}: the label column {label} contains JSON objects: write plain labels into a column."
        )
    if any(isinstance(value, list) for value in columns[label]):
        raise DataError(
            f"{data}: the label column {label} contains lists: write a task file of kind multi-label or "
            'token-classification, as the page "Your own data" shows.'
        )
    answers = answers_of(columns, (*texts, label))
    complete = len(answers)
    if not complete:
        raise DataError(f"{data}: no row has both {' and '.join(texts)} and {label}.")
    skipped = len(columns[label]) - complete
    answers += [answer for _, labels in others.values() for answer in labels]
    mark = decimal_mark(answers, data, label)
    kind = kind_of_labels(answers, data, label, mark)
    names = ["text"] if len(texts) == 1 else ["first", "second"]
    renamed = {
        ours: theirs for ours, theirs in (*zip(names, texts, strict=True), ("label", label)) if ours != theirs
    }
    source = {**source, "skip_empty": True}
    if len(set(map(str, columns.get("id", ())))) < len(columns.get("id", ())):
        source["numbered"] = True
        unusual = [*unusual, "id: not unique, so examples are identified by their position"]
    if renamed:
        source["map"] = renamed
    parts = {name: part for name, part in (("validation", VALIDATION), ("test", TEST)) if name not in others}
    share = {name: round(min(part, LARGEST / complete), 4) for name, part in parts.items()}
    held_out = {name: {"of": "train", "share": part, "stratified": True} for name, part in share.items()}
    content: dict[str, Any] = {
        "name": task_name_of(data, path),
        "version": 1,
        "about": f"made from {data.name}",
        **({} if language == ENGLISH else {"language": language}),
        "kind": kind,
        "text": names[0] if len(names) == 1 else names,
    }
    of_labels, reading, notes_on_labels = _label_entries(answers, kind, mark)
    notes = [f"text: {' and '.join(texts)}", f"label: {label}", *unusual, *notes_on_labels]
    content |= {
        **of_labels,
        "source": {**source, **reading},
        **({"holdout": held_out} if held_out else {}),
        "reported": "test",
    }
    notes.append(
        f"{len(answers):,} examples"
        + (f"; rows skipped, without a text or a label: {skipped:,}" if skipped else "")
    )
    notes += [*about_joining(columns, texts, label), *about_split_column(columns)]
    splits = [f"{part:.0%} {name}" for name, part in {"train": 1 - sum(share.values()), **share}.items()]
    splits += [f"{name} from {file.name}" for name, (file, _) in others.items()]
    notes.append(f"split: {', '.join(splits)}")
    return content, notes


def _label_entries(
    answers: list[str], kind: str, mark: str
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the entries of a task file that follow from its labels, those of its source, and notes on the labels."""
    if kind == "classification":
        labels, writings = label_names(answers)
        most, count = Counter(writings.get(answer, answer) for answer in answers).most_common(1)[0]
        share = f"{count / len(answers):.0%}"
        notes = [f"{len(labels)} labels: {some(labels)}; the most common one, {most}, in {share}"]
        entries = {"labels": labels, "metrics": ["accuracy", "macro_f1"]}
        notes += [*about_joined_labels(answers), *missing_values(answers), *rare_labels(answers)]
        return entries, {"values": writings} if writings else {}, notes
    numbers = sorted(float(answer.replace(mark, ".")) for answer in answers)
    notes = [f"regression: numbers from {numbers[0]:g} to {numbers[-1]:g}"]
    return {"metrics": ["pearson", "spearman"]}, {"decimal": mark} if mark != "." else {}, notes
