"""Prune a model folder layer by layer, with only one layer and the embeddings in memory.

The folder's files are copied first. Then, layer by layer, weights are read from the original, pruned, and written
over those of the copy. A journal records each finished layer and the inputs of the next, so that the same call
resumes after a kill and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import RecipeError, TombolaError
from tombola.foundations.hardware.memory import freed_at_once
from tombola.foundations.lazy import lazy_module
from tombola.foundations.paths import require_empty
from tombola.models.skeleton import Skeleton
from tombola.search import SearchSettings
from tombola.search.calibration import LayerWalk
from tombola.search.layerwise import LayerwiseSettings, Place, places_of, visit_layer
from tombola.search.magnitude import Magnitude
from tombola.search.pruning_journal import PruningJournal

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tombola import masks
    from tombola.masks import Mask, Units
    from tombola.masks.bits import Bits
    from tombola.masks.in_matrices import MatrixSelection
    from tombola.objectives import Batch
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")


@dataclass(frozen=True)
class OneShot:
    """How to prune a model in one shot.

    Args:
        settings: The search: magnitude, or a calibrated one.
        selection: How much of each matrix to remove.
        batches: Returns the calibration data; called once.
        about: Whatever else the result depends on and should be recorded: the data, the seed …
        device: Where layers run.
    """

    settings: SearchSettings
    selection: MatrixSelection
    batches: Callable[[], Iterable[Batch]]
    about: Mapping[str, Any]
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not isinstance(self.settings, LayerwiseSettings | Magnitude):
            raise RecipeError(
                f"method: {self.settings.method} cannot prune a model layer by layer; use magnitude, wanda, ria or "
                "sparsegpt, or a recipe"
            )

    def described(self) -> dict[str, Any]:
        """Return everything that determines the result, for JSON."""
        return {
            "search": self.settings.canonical(),
            "sparsity": self.selection.sparsity,
            "scope": self.selection.scope,
            "pattern": str(self.selection.pattern) if self.selection.pattern else None,
            **self.about,
        }


def prune_folder(
    folder: Path,
    output: Path,
    order: OneShot,
    progress: Callable[[int, int], None] = lambda done, steps: None,
) -> Mask:
    """Prune the layers of a model folder into a new folder, which transformers loads like the first.

    Args:
        folder: The model.
        output: The folder for the pruned model and its mask.
        order: How to prune it.
        progress: Called with the number of finished layers and the total.
    """
    require_empty(output)
    skeleton = Skeleton(folder, order.device)
    base = masks.geometry(skeleton.model)
    units = masks.Units.of(skeleton.model, "weight", base, layers=order.settings.layers).without("pooler")
    _check(order, units, skeleton)
    with (
        freed_at_once(),
        _locked(output),
        PruningJournal.opened(output, skeleton, order.described()) as journal,
    ):
        _prune_layers(skeleton, order, units, journal, progress)
        mask = journal.mask(units, skeleton)
        journal.finish(output, mask, order.described())
    return mask


def _check(order: OneShot, units: Units, skeleton: Skeleton) -> None:
    """Raise for matrices that the pattern does not fit, or that are stored in another format, before the copy."""
    for place in places_of(units):
        name = skeleton.stored_name(place.tensor)
        if name is not None:
            skeleton.shards.entries[name].check_dtype()
    if order.selection.pattern is not None:
        for matrix in units.layout.matrices:
            order.selection.pattern.check(matrix.name, matrix.outputs, matrix.inputs)


def _prune_layers(
    skeleton: Skeleton,
    order: OneShot,
    units: Units,
    journal: PruningJournal,
    progress: Callable[[int, int], None],
) -> None:
    places, count = places_of(units), skeleton.layers
    if journal.done == count:
        return
    walk = _walk(skeleton, order, journal)
    for index in range(journal.done, count):
        progress(index, count)
        in_layer = [place for place in places if place.layer == index]
        skeleton.fill_layer(index)
        journal.note_digests(index, skeleton, units)
        pruned = _Layer(skeleton, order, journal)
        if walk is None:
            for place in in_layer:
                pruned.prune(place, None)
        else:
            settings = order.settings
            assert isinstance(settings, LayerwiseSettings)
            visit_layer(walk, index, in_layer, settings.statistic, pruned.prune, in_order=settings.layerwise)
        pruned.write()
        skeleton.empty_layer(index)
        journal.note(index, pruned.kept, walk.hidden if walk is not None and index + 1 < count else [])
        del pruned  # frees the layer's weights before the next layer is read
    progress(count, count)


def _walk(skeleton: Skeleton, order: OneShot, journal: PruningJournal) -> LayerWalk | None:
    """Return the calibration data at the input of the first unfinished layer; None if none is needed."""
    if not isinstance(order.settings, LayerwiseSettings):
        return None
    skeleton.fill_before_layers()
    skeleton.fill_layer(0)
    walk = LayerWalk(skeleton.model, order.batches())
    skeleton.empty_before_layers()
    skeleton.empty_layer(0)
    if journal.done:
        walk.hidden = journal.hidden(len(walk.hidden), order.device)
    return walk


class _Layer:
    """The matrices of one layer, pruned in place and then written into the copy."""

    def __init__(self, skeleton: Skeleton, order: OneShot, journal: PruningJournal) -> None:
        self.skeleton, self.order, self.journal = skeleton, order, journal
        self.kept: dict[str, Bits] = {}
        """The masks of the pruned matrices."""
        self._tensors: dict[str, Tensor] = {}

    def prune(self, place: Place, statistic: Tensor | None) -> None:
        """Prune a matrix, rounding to the file's precision so that later layers see what is stored."""
        from tombola.masks.bits import pack

        settings, selection = self.order.settings, self.order.selection
        stored = self.skeleton.model.get_parameter(place.tensor).detach()
        self._tensors[place.tensor] = stored
        weight = place.view(stored)
        if statistic is None:
            kept = selection.keep(weight.abs())
            weight.masked_fill_(~kept, 0.0)
        else:
            assert isinstance(settings, LayerwiseSettings)
            kept = settings.prune(weight, statistic, selection)
            weight.copy_(weight.to(self.skeleton.shards.entries[self._stored_name(place.tensor)].dtype))
        self.kept[place.name] = pack(place.stored(kept).cpu())

    def write(self) -> None:
        """Write the pruned tensors."""
        for tensor, values in self._tensors.items():
            self.skeleton.shards.overwrite(self.journal.model, self._stored_name(tensor), values)

    def _stored_name(self, tensor: str) -> str:
        name = self.skeleton.stored_name(tensor)
        assert name is not None, "the matrices of layers are stored"
        return name


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Let only one process at a time prune into a folder."""
    from filelock import FileLock, Timeout

    output.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(output.with_name(f".{output.name}.lock"), timeout=0)
    try:
        with lock:
            yield
    except Timeout:
        raise TombolaError(
            f"another process is pruning into {output}: wait for it, or choose another folder"
        ) from None
    Path(lock.lock_file).unlink(missing_ok=True)
