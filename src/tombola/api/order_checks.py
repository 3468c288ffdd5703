"""Check the arguments of `compress`: each on its own, with each other, and with the changes to the recipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from tombola.api.choosing import with_any_speedup
from tombola.errors import TombolaError
from tombola.foundations.hardware.machine import check_device
from tombola.recipe.grid import expand
from tombola.recipe.reading import Raw, parse_overrides

if TYPE_CHECKING:
    from tombola.api.orders import Order

AGAINST: dict[str, dict[str, Any]] = {
    "typos": {"augment": "typos", "defend": ["unicode", "spelling"]},
    "synonyms": {"augment": "synonyms", "defend": []},
}
"""What a ticket can withstand: the augmentation it is trained on, and the defenses that correct its inputs."""
TARGETS = ("speedup", "latency", "parameters")
"""The settings of the draw that say how small the ticket is."""
OF_TIME = ("batch_size", "length", "threads", "device")
"""The settings of the draw that go with a speed-up or a latency."""
SECTIONS = ("search", "draw", "retrain")
"""The sections that a compression's recipe must have."""
VARIANTS = ("original", "ticket")


def changed_keys(overrides: Iterable[str]) -> set[str]:
    """Return the dotted keys that overrides set, with those of the sections around them."""
    return {key for path, value in parse_overrides(overrides).items() for key in _keys(path, value)}


def _keys(path: str, value: Any) -> Iterator[str]:
    parts = path.split(".")
    yield from (".".join(parts[: size + 1]) for size in range(len(parts)))
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _keys(f"{path}.{name}", inner)


def given_targets(order: Order) -> dict[str, float | None]:
    """Return the target that an order names; the speed-up None stands for the fastest ticket."""
    if order.fastest:
        return {"speedup": None}
    return {name: getattr(order, name) for name in TARGETS if getattr(order, name) is not None}


def check_order(order: Order, changed: Collection[str]) -> None:
    """Raise an error if arguments make no sense, or contradict each other or the changes to the recipe.

    Args:
        order: The arguments of `compress`.
        changed: The keys that its overrides set.
    """
    if sum(getattr(order, name) is not None for name in TARGETS) + order.fastest > 1:
        raise TombolaError(
            "--speedup, --fastest, --latency and --parameters are alternatives: pass only one of them"
        )
    if not isfinite(order.within) or order.within < 0:
        raise TombolaError(f"--within {order.within:g}: takes the accepted loss in points, 0 or more")
    if order.seconds is not None and not (isfinite(order.seconds) and order.seconds > 0):
        raise TombolaError(f"--time {order.seconds:g}: takes a number of seconds greater than 0")
    if order.device is not None:
        check_device(order.device)
    for name in order.against or ():
        if name not in AGAINST:
            raise TombolaError(f"--against {name}: choose from {', '.join(AGAINST)}")
    for option, keys in _set_by(order).items():
        for key in keys:
            if key in changed:
                raise TombolaError(f"{option} sets {key}: remove one of them")


def _set_by(order: Order) -> dict[str, tuple[str, ...]]:
    """Return the recipe's keys that each given argument sets."""
    targets = tuple(f"draw.{name}" for name in TARGETS)
    keys = {
        "--speedup": targets if order.speedup is not None else (),
        "--fastest": targets if order.fastest else (),
        "--latency": targets if order.latency is not None else (),
        "--parameters": targets if order.parameters is not None else (),
        "--batch-size": ("draw.batch_size",) if order.batch_size is not None else (),
        "--threads": ("draw.threads", "measure.threads") if order.threads is not None else (),
        "--device": ("draw.device", "measure.device") if order.device is not None else (),
        "--against": ("defend", "search.augment.of", "retrain.augment.of")
        if order.against is not None
        else (),
        "--time": ("retrain.epochs",) if order.seconds is not None else (),
    }
    return {"the argument MODEL": ("model",), "the argument DATA": ("task",), **keys}


def check_sections(raw: Raw, name: str) -> None:
    """Raise an error unless a recipe has the sections and variants of a compression.

    Args:
        raw: The recipe.
        name: Its name or path.
    """
    variants = raw.get("variants")
    known = variants if isinstance(variants, dict) else {}
    missing = [key for key in SECTIONS if not isinstance(raw.get(key), dict)]
    missing += [f"variants.{key}" for key in VARIANTS if not isinstance(known.get(key), dict)]
    if missing:
        raise TombolaError(
            f"{name}: is not a recipe for compress; it lacks {', '.join(missing)}: start from a copy of "
            "compress/default"
        )


def check_values(raw: Raw) -> None:
    """Raise an error for wrong values in a recipe before it is adapted to the arguments, which takes valid ones.

    Args:
        raw: The recipe, whose targets and evaluation may be those of another task and are not checked.
    """
    draw = {name: value for name, value in raw["draw"].items() if name not in TARGETS}
    parts = {name: part for name, part in raw.items() if name not in ("variants", "runtime")}
    for name in ("evaluate", "attack"):
        if isinstance(parts.get(name), dict):
            parts[name] = {**parts[name], "on": ["train"] if name == "evaluate" else "train"}
    check_cells({**parts, "draw": {**draw, "speedup": 2.0}})


def check_epochs(raw: Raw) -> None:
    """Raise an error if the retraining of a recipe is not given in epochs, which `--time` counts.

    Args:
        raw: The recipe.
    """
    if not raw["retrain"].get("epochs") or raw["retrain"].get("steps"):
        raise TombolaError(
            "--time sets retrain.epochs: remove retrain.steps, and let retrain.epochs be greater than 0"
        )


def check_cells(raw: Raw) -> None:
    """Raise an error if a recipe would make several tickets, because of a list, or none that can be judged."""
    cells = expand(with_any_speedup(raw))
    axes = {name for cell in cells for name in cell.axes if name != "runtime"}
    if axes:
        raise TombolaError(
            f"{', '.join(sorted(axes))}: compress makes a single ticket, so give one value; for lists, use `tombola "
            "study`"
        )
    if not any(cell.recipe.runtime == "transformers" for cell in cells):
        runtimes = ", ".join(dict.fromkeys(["transformers", *(cell.recipe.runtime for cell in cells)]))
        raise TombolaError(
            f"runtime: compress compares the ticket with the original in transformers: write runtime=[{runtimes}]"
        )
    if not all(cell.recipe.evaluate.on for cell in cells):
        raise TombolaError("evaluate.on: compress needs data to compare the ticket with the original on")
