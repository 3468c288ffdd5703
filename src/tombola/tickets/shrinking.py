"""Shrink or pack a ticket's folder, check the result, and measure the gain."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from transformers import PreTrainedModel

from tombola.errors import ModelError, TombolaError
from tombola.foundations.checksums import CHECKSUMS, write_checksums
from tombola.foundations.quiet import quiet
from tombola.masks import MASK, Mask
from tombola.models.loading import model_class
from tombola.models.safety import INDEX
from tombola.shrink.folders import (
    config_from,
    copy_companions,
    load_model,
    require_safetensors,
    written_whole,
)
from tombola.shrink.inputs import agree, largest_difference, outputs_of, random_inputs
from tombola.shrink.measuring import measure
from tombola.shrink.packing import pack, unpack
from tombola.shrink.shrinking import MULTIPLE, require_structure, shrink
from tombola.shrink.sizes import Row, Sizes, Speedup, compare
from tombola.shrink.texts import LENGTH, RandomTokens
from tombola.shrink.timing import ROUNDS
from tombola.store.manifest import MANIFEST
from tombola.tickets.saved import CARD, copy_task_file, read_info
from tombola.tickets.texts import SHRINKAGE, recipe_of, texts_of
from tombola.tickets.ticket import TICKET

TOLERANCE = 1e-5


class Shrinkage(BaseModel):
    """A shrunk ticket: what was removed, and how the models before and after compare.

    Attributes:
        folder: The folder of the shrunk model.
        units: The kind of units.
        removed: The number of units removed.
        of: The total number of units.
        before: The size of the ticket.
        after: The size of the shrunk model, timed in turns with the ticket.
        speedup: The speed-up of the shrunk model, by batch size.
        max_difference: The largest difference between the outputs.
        recipe: The ticket's recipe, if known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path
    units: str
    removed: int
    of: int
    before: Sizes
    after: Sizes
    speedup: dict[int, Speedup]
    max_difference: float
    recipe: dict[str, Any] | None = None

    @property
    def rows(self) -> list[Row]:
        """The table to print."""
        return compare(self.before, self.after, self.speedup)


class Packing(BaseModel):
    """A packed ticket: dense and packed size in bytes, of the whole file and of the prunable matrices alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    weight_sparsity: float
    dense: int
    packed: int
    dense_matrices: int
    packed_matrices: int

    @property
    def rows(self) -> list[Row]:
        """The table to print."""
        return [
            Row(what="the whole file", before=self.dense, after=self.packed, unit="B"),
            Row(
                what="its prunable matrices", before=self.dense_matrices, after=self.packed_matrices, unit="B"
            ),
        ]


def shrink_ticket(
    folder: str | Path,
    output: str | Path,
    *,
    multiple: int = MULTIPLE,
    batch_sizes: Sequence[int] = (1, 32),
    length: int | None = None,
    rounds: int = ROUNDS,
) -> Shrinkage:
    """Shrink the model of a ticket's folder into another folder, tokenizer and report included.

    Nothing is written unless the shrunk folder, loaded again, computes the outputs of the masked model. A ticket that
    was made small by its recipe is copied, and compared with a model of the dense one's size.

    Args:
        folder: The ticket.
        output: The folder to write.
        multiple: Neurons are kept in multiples of this number.
        batch_sizes: Texts per forward pass, for timing.
        length: Tokens per text, for timing; by default texts of the ticket's task at their own lengths, or random
            tokens if the task's data cannot be found.
        rounds: Undisturbed rounds of timing for each batch size.
    """
    folder, output = Path(folder), Path(output)
    mask = Mask.load(folder / MASK)
    if (cut := cut_info(folder)) is not None:
        return _copy_cut(folder, output, mask, cut, batch_sizes, length, rounds)
    require_structure(mask)
    masked = load_model(folder)
    mask.apply(masked)
    with written_whole(output) as partial:
        shrink(masked, mask, multiple).save_pretrained(partial)
        _copy_companions(folder, partial)
        shrunk = load_model(partial)
        fixed = RandomTokens.fitting(masked.config, length or LENGTH)
        texts = fixed if length else texts_of(folder, masked.config)
        (before, after), (speedup,) = measure(
            masked, shrunk, batch_sizes=batch_sizes, texts=texts, rounds=rounds, reference_corrects=True
        )
        shrinkage = Shrinkage(
            folder=output,
            units=mask.units.granularity,
            removed=mask.removed,
            of=mask.count,
            before=before.model_copy(update={"bytes": _bytes(folder)}),
            after=after.model_copy(update={"bytes": _bytes(partial)}),
            speedup=speedup,
            max_difference=_largest_difference(masked, shrunk, fixed.length),
            recipe=recipe_of(folder),
        )
        _seal(partial, shrinkage)
    return shrinkage


def _largest_difference(masked: PreTrainedModel, shrunk: PreTrainedModel, length: int) -> float:
    """Return the largest difference between the outputs of both models, or raise if they compute something else."""
    inputs = random_inputs(masked, 8, length, padded=True)
    expected, found = outputs_of(masked.float(), inputs), outputs_of(shrunk.float(), inputs)
    difference = largest_difference(expected, found)
    if not agree(expected, found, TOLERANCE):
        raise ModelError(
            f"the shrunk {masked.config.model_type} model differs from the masked one by {difference:.2g}, so it "
            "was not written: its family file does not list everything that depends on the number of heads."
        )
    return difference


def cut_info(folder: Path) -> dict[str, Any] | None:
    """Return how the model of a ticket's folder was cut out, or None if it still has its removed units.

    Args:
        folder: The ticket's folder.
    """
    return read_info(folder / TICKET, str(folder)).get("cut") if (folder / TICKET).is_file() else None


def _copy_cut(
    folder: Path,
    output: Path,
    mask: Mask,
    cut: Mapping[str, Any],
    batch_sizes: Sequence[int],
    length: int | None,
    rounds: int,
) -> Shrinkage:
    """Copy a ticket that is small already, and compare it with a model of the dense model's size."""
    try:
        config = config_from(dict(cut["dense"]))
        architecture = cut["dense"]["architectures"][0]
    except (KeyError, IndexError, TypeError, ValueError):
        raise TombolaError(
            f"{folder / TICKET} does not record the size of the dense model: copy or create it again."
        ) from None
    with quiet(), torch.random.fork_rng(devices=[]):
        dense = model_class(architecture)(config)
    with written_whole(output) as partial:
        small = load_model(folder)
        small.save_pretrained(partial)
        _copy_companions(folder, partial)
        texts = RandomTokens.fitting(config, length) if length else texts_of(folder, config)
        (before, after), (speedup,) = measure(
            dense, small, batch_sizes=batch_sizes, texts=texts, rounds=rounds
        )
        shrinkage = Shrinkage(
            folder=output,
            units=mask.units.granularity,
            removed=mask.removed,
            of=mask.count,
            before=before,
            after=after.model_copy(update={"bytes": _bytes(partial)}),
            speedup=speedup,
            max_difference=0.0,
            recipe=recipe_of(folder),
        )
        _seal(partial, shrinkage)
    return shrinkage


def pack_ticket(folder: str | Path, path: str | Path) -> Packing:
    """Pack the model of a ticket's folder into one file, and return the sizes before and after.

    Args:
        folder: The ticket's folder.
        path: The file to write.
    """
    folder, path = Path(folder), Path(path)
    if cut_info(folder) is not None:
        raise TombolaError(
            f"{folder} already contains a small model, so there is nothing to pack: use it as it is."
        )
    mask = Mask.load(folder / MASK)
    model = load_model(folder)
    mask.apply(model)
    pack(model, mask, path)
    packed = unpack(path).state_dict()
    if any(not tensor.equal(packed[name]) for name, tensor in model.state_dict().items()):
        raise ModelError(
            f"{path} does not unpack to the masked model: please report this, and keep the ticket."
        )
    matrices = mask.units.prunable * model.dtype.itemsize
    outside = _bytes(folder) - matrices
    return Packing(
        path=path,
        weight_sparsity=mask.weight_sparsity,
        dense=_bytes(folder),
        packed=path.stat().st_size,
        dense_matrices=matrices,
        packed_matrices=path.stat().st_size - outside,
    )


def _copy_companions(folder: Path, target: Path) -> None:
    """Copy what is beside the weights and stays true of a small model: the tokenizer, the defense, the task file."""
    copy_companions(folder, target, without=(TICKET, INDEX, MANIFEST, "log.json", CHECKSUMS))
    copy_task_file(folder, target)


def _seal(folder: Path, shrinkage: Shrinkage) -> None:
    """Write the report into the folder of a shrunk model, and then the checksums."""
    report = shrinkage.model_dump_json(indent=1, exclude={"folder"})
    (folder / SHRINKAGE).write_text(report, encoding="utf-8")
    write_checksums(folder, without=(CARD,))


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in require_safetensors(folder))
