"""Load splits from the hub with `datasets`, and check the published label order against the task's."""

from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.readers import Table

if TYPE_CHECKING:
    from tombola.tasks.task import Task


class NotOnHub(Exception):
    """The hub (or its local cache) does not provide the split; the message says why."""


def hub_table(task: "Task", split: str) -> Table:
    """Return the hub's split as a table. `datasets` handles HF_HUB_OFFLINE and the local cache."""
    try:
        import datasets
    except ImportError:
        raise NotOnHub("the package 'datasets' is not installed: pip install 'tombola[hub]'") from None
    source = task.source
    published = task.splits.get(split, split)
    place = f"{source.hub}{f'/{source.config}' if source.config else ''}[{published}]"
    try:
        data = datasets.load_dataset(source.hub, source.config, split=published)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise NotOnHub(f"{place}: {_first_line(error)}") from None

    columns_by_name = {name: _named(data.features[name], data[name]) for name in data.column_names}
    answer = source.hub_map.get("label", ["label"])[0]
    feature = data.features.get(answer)
    if isinstance(feature, datasets.ClassLabel) and task.labels is not None:
        _check_order(task, feature.names, place)
        columns_by_name[answer] = [
            task.labels[n] if n is not None and n >= 0 else n for n in columns_by_name[answer]
        ]
    columns = ["id" if name == "idx" else name for name in columns_by_name]
    values = list(columns_by_name.values())
    rows = ((number, list(row)) for number, row in enumerate(zip(*values, strict=True)))
    return Table(columns, rows, lambda row: f"{place} row {row}")


def _named(feature: Any, values: Any) -> Any:
    """Convert lists of class numbers to lists of names; return anything else unchanged."""
    names = getattr(getattr(feature, "feature", None), "names", None)
    return values if names is None else [[names[number] for number in row] for row in values]


def _check_order(task: "Task", names: list[str], place: str) -> None:
    aliases = {raw: ours for layout in task.source.layouts for raw, ours in layout.values.items()}
    ours = [label.casefold() for label in task.labels or ()]
    theirs = [aliases.get(name, name).casefold() for name in names]
    if ours != theirs:
        raise DataError(
            f"{place} orders its labels {names}, but the task {task.name!r} says {task.labels}: "
            "correct `labels` in the task file."
        )


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
