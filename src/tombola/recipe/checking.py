"""Check recipes and task files, and optionally their data, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tombola.errors import RecipeError, TombolaError
from tombola.foundations.caching import run_cache
from tombola.foundations.settings import checked
from tombola.foundations.yaml12 import parse_yaml
from tombola.recipe.builtin import find_recipe
from tombola.recipe.cell import Cell
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.recipe import Recipe
from tombola.recipe.share import check_share
from tombola.recipe.study import OWN, StudyRecipe, load_study, study_cells, study_claims
from tombola.tasks import Split, Task
from tombola.tasks.data_files import data_advice, is_data_file
from tombola.tasks.targets import all_targets, find_target
from tombola.training.settings import TrainSettings

FITTING = 0.95
"""The share of texts that a suggested length fits."""


def check_file(file: str, overrides: Iterable[str] = (), data: bool = False) -> str:
    """Check a recipe, a study or a task file without running it, and return a one-sentence summary.

    Args:
        file: A file, or the name of a built-in recipe.
        overrides: Changes to a recipe, as `key=value`.
        data: Also read the data and the models' configs, and describe each split in a further line.

    Raises:
        RecipeError: With all mistakes of a recipe.
    """
    if is_data_file(Path(file)):
        raise RecipeError(data_advice(Path(file)))
    path = find_recipe(file)
    if isinstance(path, Path) and path.is_file() and _is_task(path):
        if changes := list(overrides):
            raise RecipeError(
                f"{file}: is a task file, which cannot be changed by {changes[0]}: edit the file"
            )
        task = Task.from_file(path)
        verdict = f"a valid task, {task.name} version {task.version}"
        splits: list[Wanted] = [(task, name, None, None, 0) for name in task.split_names()]
        return "\n".join([verdict, *(_describe(splits) if data else ())])
    raw = load_recipe(path)
    if "recipes" not in raw:  # changes to a study are changes to its recipes
        raw = load_recipe(raw, overrides)
    if any(key in raw for key in ("recipes", *OWN)):
        study = load_study(path, overrides)
        settings = checked(StudyRecipe, {key: value for key, value in study.items() if key != "engine"})
        cells = study_cells(settings)
        study_claims(settings, cells)
        verdict = f"a valid study of {_count(len(settings.recipes), 'recipe')}, {_count(len(cells), 'cell')}"
    elif "tasks" in raw:
        recipe = check_share(raw)
        cells = [recipe.for_task(task, recipe.seed[0]) for task in recipe.tasks]
        verdict = f"a valid recipe for sharing, {_count(len(recipe.tasks), 'task')}"
    else:
        cells = expand(raw)
        variants = len({cell.variant for cell in cells})
        verdict = f"a valid recipe, {_count(len(cells), 'cell')} in {_count(variants, 'variant')}"
    return "\n".join([verdict, *(_check_data(cells) if data else ())])


def _is_task(path: Path) -> bool:
    try:
        raw = parse_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    return isinstance(raw, dict) and "source" in raw


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


Wanted = tuple[Task, str, str | None, int | None, int]
"""A split to load: its task and name, the data folder, and the size and seed of a random subset."""


@dataclass(frozen=True)
class _Reader:
    """A model that reads the texts, and its maximum length."""

    model: str
    max_length: int


def _check_data(cells: Iterable[Cell]) -> list[str]:
    """Return a line for each split that the cells read."""
    splits: dict[tuple[str, str], Wanted] = {}
    readers: dict[str, set[_Reader]] = {}
    reporting: dict[tuple[str, ...], TrainSettings] = {}
    with run_cache():
        for cell in cells:
            for recipe in filter(None, (cell.recipe, cell.source)):
                for split in _splits(recipe):
                    task, name, *_ = split
                    splits.setdefault((task.name, name), split)
                    readers.setdefault(task.name, set()).add(_Reader(recipe.model, recipe.train.max_length))
                if recipe.train.report_to:
                    reporting[recipe.train.report_to] = recipe.train
        return _describe(splits.values(), readers, list(reporting.values()))


def _splits(recipe: Recipe) -> Iterator[Wanted]:
    """Yield the splits that a recipe reads: for training, mixed into it, and for evaluation and attacks."""
    data = recipe.data
    mixed = [entry.on for entry in (*data.mix, *getattr(recipe.search, "mix", ()))]
    further = [recipe.attack.on] if recipe.attack else []
    further += [recipe.evaluate.best] if recipe.evaluate.best else []
    for on in ("train", *mixed, *all_targets(recipe.evaluate.on, recipe.task), *further):
        name, split = find_target(on, recipe.task)
        task = Task.named(name)
        if data.holdout and name == recipe.task:
            task = task.holding_out(data.holdout)
        limit = data.train if on == "train" else None if on in mixed else data.evaluation
        yield task, split.partition("+")[0], data.folder, limit, data.seed


def _describe(
    splits: Iterable[Wanted],
    readers: dict[str, set[_Reader]] | None = None,
    reporting: Sequence[TrainSettings] = (),
) -> list[str]:
    """Return a line for each split: rows, labels, overlap with the training data, and truncated texts.

    Raises:
        RecipeError: If data, models or trackers are missing or damaged; names all of them.
    """
    lines: list[str] = []
    mistakes: list[str] = _missing_trackers(reporting)
    training: dict[str, Split] = {}
    loaded: list[Split] = []
    for task, name, folder, limit, seed in splits:
        try:
            split = task.load(
                name, folder=Path(folder).expanduser() if folder else None, limit=limit, seed=seed
            )
        except TombolaError as error:
            mistakes.append(str(error))
            continue
        loaded.append(split)
        if name == "train":
            training[task.name] = split
    for split in loaded:
        parts = [f"{split.task.name}/{split.name}: {len(split):,} rows{_labels(split)}"]
        parts += _missing_labels(split)
        parts += _duplicates(split, training.values())
        for reader in sorted(
            (readers or {}).get(split.task.name, ()), key=lambda reader: (reader.model, reader.max_length)
        ):
            try:
                parts += _lengths(split, reader)
            except TombolaError as error:
                mistakes.append(str(error))
        lines.append("; ".join(parts))
    if mistakes:
        raise RecipeError(*mistakes)
    return lines


def _missing_trackers(reporting: Sequence[TrainSettings]) -> list[str]:
    """Return the problems with the trackers that trainings report to."""
    mistakes = []
    for settings in reporting:
        from tombola.training.trackers import check_trackers

        try:
            check_trackers(settings.report_to)
        except TombolaError as error:
            mistakes.append(f"train.{error}")
    return mistakes


def _labels(split: Split) -> str:
    """Return the counts of the labels."""
    if split.task.labels is None or not all(isinstance(label, int) for label in split.labels):
        return ""
    counts = Counter(split.labels)
    return f" ({', '.join(f'{name} {counts[number]:,}' for number, name in enumerate(split.task.labels))})"


def _missing_labels(split: Split) -> Iterator[str]:
    """Name the task's labels without examples, which are never learned or never scored."""
    if split.task.labels is None or not all(isinstance(label, int) for label in split.labels):
        return
    missing = [name for number, name in enumerate(split.task.labels) if number not in split.labels]
    if missing:
        never = "learned" if split.name == "train" else "scored"
        yield (
            f"no example of {', '.join(missing)}, which is therefore never {never} here: add some, or remove the "
            "label"
        )


def _duplicates(split: Split, training: Iterable[Split]) -> Iterator[str]:
    """Count the texts that are duplicates, or that are in training data too."""
    again = len(split) - len(set(split.text_keys))
    if again:
        yield f"{again:,} {'is a duplicate' if again == 1 else 'are duplicates'}"
    for train in training:
        if train is not split and len(train.task.text) == len(split.task.text):
            keys = set(train.text_keys)
            if shared := sum(key in keys for key in split.text_keys):
                yield f"{shared:,} also {'occurs' if shared == 1 else 'occur'} in {train.task.name}/{train.name}"


def _lengths(split: Split, reader: _Reader) -> Iterator[str]:
    """Count the texts that are truncated, and give a length that fits most."""
    if split.task.kind not in ("classification", "regression"):
        return  # contexts are read in windows and passages in blocks: nothing is truncated
    import numpy as np

    from tombola.models.finding import find_folder
    from tombola.models.loading import load_tokenizer
    from tombola.models.safety import open_config
    from tombola.tasks import fitting_length

    folder = find_folder(reader.model)
    longest = fitting_length(reader.max_length, open_config(folder))
    columns = [list(column) for column in zip(*split.texts, strict=True)]
    ids = load_tokenizer(folder)(*columns, truncation=False, verbose=False)["input_ids"]
    lengths = np.array([len(tokens) for tokens in ids])
    cut = int((lengths > longest).sum())
    fits = int(np.quantile(lengths, FITTING, method="higher"))
    if cut:
        longer = f"{cut:,} {'is' if cut == 1 else 'are'} longer than {longest} tokens of {reader.model} and truncated"
    else:
        longer = f"none is longer than {longest} tokens of {reader.model}"
    yield f"{longer} ({FITTING:.0%} fit in {fits})"
