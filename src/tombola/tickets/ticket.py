"""The ticket: a mask, the weights under it, and everything needed to trust and reproduce it.

Its folder is an ordinary transformers model folder, so `AutoModelFor….from_pretrained` and `pipeline` open it;
the mask, the recipe, the scores and the provenance are stored next to the weights.
"""

from __future__ import annotations

import filecmp
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.defenses import DEFENSE, load_defense
from tombola.errors import TombolaError
from tombola.foundations.checksums import CHECKSUMS
from tombola.foundations.folders import public_name
from tombola.foundations.paths import replacing
from tombola.foundations.quiet import quiet
from tombola.masks import MASK, Mask
from tombola.models.finding import MODEL_FILES
from tombola.models.loading import open_model
from tombola.models.safety import read_config
from tombola.pipeline.stages.base import LOG, SCORES
from tombola.pipeline.stages.export import ExportStage, Quantise
from tombola.store.manifest import MANIFEST
from tombola.tickets.card import card, figures
from tombola.tickets.saved import SavedTicket, write_info

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TICKET = "ticket.json"
SCORED_FILES = {"onnx": ExportStage.graph, "onnx_int8": Quantise.graph}
"""The file that a ticket's scores belong to, by the recipe's runtime, if that is not transformers."""


@dataclass(frozen=True)
class Ticket(SavedTicket):
    """A subnetwork with its weights, saved in a folder."""

    info_file: ClassVar[str] = TICKET
    otherwise: ClassVar[str] = "a model but not a ticket"
    required: ClassVar[tuple[str, ...]] = ("metrics", "recipe")

    def __repr__(self) -> str:
        try:
            lines = _lines(self.info)
        except (AttributeError, LookupError, TypeError, ValueError):  # a description that somebody else wrote
            lines = ["an incomplete description"]
        return "\n  ".join([f"Ticket({str(self.folder)!r}): {lines[0]}", *lines[1:]])

    @cached_property
    def mask(self) -> Mask:
        """The mask of the units that are kept."""
        if self.info.get("mask", True) is None:
            raise TombolaError(f"{self.folder} is a dense model: it has no mask")
        return Mask.load(self.folder / MASK)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The scores measured when the ticket was made, by data set and metric."""
        metrics: Mapping[str, Any] = self.info["metrics"]
        return metrics

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe that reproduces this ticket."""
        recipe: Mapping[str, Any] = self.info["recipe"]
        return recipe

    @property
    def is_cut(self) -> bool:
        """Whether the model is small already: its removed units have been cut out."""
        return "cut" in self.info

    def model(self, **options: Any) -> PreTrainedModel:
        """Load the ticket as a transformers model; removed weights are zero, or absent if they were cut out.

        Args:
            **options: Passed to `from_pretrained` of the model's class, such as `dtype`.
        """
        return open_model(self.folder, **options)

    def shrink(self) -> PreTrainedModel:
        """Return the model with the removed heads, neurons, FFNs and layers cut out: smaller, with the same outputs."""
        from tombola.shrink import shrink

        return self.model() if self.is_cut else shrink(self.model(), self.mask)


def write_ticket(
    folder: Path,
    model: Path,
    mask: Path | None,
    info: Mapping[str, Any],
    beside: Mapping[str, Path] = MappingProxyType({}),
) -> Ticket:
    """Write a ticket's folder from a finished training, its mask and its metadata.

    The mask is applied to the weights unless the model was trained under this very mask. A small model that was cut out
    by the mask (`cut` in the metadata) is copied unchanged. A dense model is written in the form of a ticket, to be
    evaluated, attacked and served like one.

    Args:
        folder: The ticket's folder; an existing ticket is replaced.
        model: The folder of the trained model.
        mask: The folder with the mask; None for a dense model.
        info: The metadata: base, mask, metrics, recipe, provenance.
        beside: Further files to copy into the folder, by their new names.
    """
    with replacing(folder, TICKET) as new:
        _copy_model(model, new, beside)
        if mask is not None:
            shutil.copyfile(mask / MASK, new / MASK)
            if "cut" not in info and not _made_under(mask / MASK, model):
                _mask_weights(new)
        architecture, *_ = read_config(new).get("architectures") or [None]
        describe = partial(ticket_card, corrections=_corrections(new), architecture=architecture)
        return Ticket(folder, write_info(new, TICKET, info, describe))


def _corrections(folder: Path) -> list[str]:
    """Return the kinds of the defenses in a folder: those of the recipe, or those that the base model came with."""
    if not (folder / DEFENSE).is_file():
        return []
    return [str(part["settings"]["kind"]) for part in load_defense(folder).parts()]


def _copy_model(model: Path, new: Path, beside: Mapping[str, Path]) -> None:
    for path in model.iterdir():
        if path.suffix in MODEL_FILES and path.name not in (MANIFEST, LOG, MASK, SCORES, CHECKSUMS):
            shutil.copyfile(path, new / path.name)
    for name, file in beside.items():
        shutil.copyfile(file, new / name)


def _made_under(mask: Path, model: Path) -> bool:
    """Return whether a model was made under a mask; an earlier round of a search has a mask of its own."""
    return (model / MASK).is_file() and filecmp.cmp(mask, model / MASK, shallow=False)


def _mask_weights(folder: Path) -> None:
    ticket = Ticket(folder, {})
    model = ticket.model()
    ticket.mask.apply(model)
    with quiet():
        model.save_pretrained(folder)


def _lines(info: Mapping[str, Any]) -> list[str]:
    """Return what a ticket is, and its scores on each data set, with control characters escaped."""
    mask, task = info.get("mask"), public_name(str(info["recipe"]["task"]))
    removed = f"{mask['weight_sparsity']:.1%} of the prunable weights removed" if mask else "dense"
    scores = (
        f"{on}: {', '.join(f'{metric} {figures(score)[0]}' for metric, score in found.items())}"
        for on, found in info["metrics"].items()
    )
    lines = [f"{public_name(str(info['base']['name']))} for {task}, {removed}", *scores]
    return [repr(line)[1:-1] for line in lines]


def _about_defense(corrections: Sequence[str]) -> str:
    """Explain what is lost if the folder is opened without Tombola."""
    if not corrections:
        return ""
    kinds = " and ".join(corrections)
    return (
        f" Correct texts before tokenising them ({kinds}, stored in `{DEFENSE}`). `ticket.tokenizer()` and all "
        "commands and functions of Tombola do this, and all scores above include it. Plain transformers does not: "
        "misspelt or disguised words reach the model unchanged, and it loses accuracy on such texts."
    )


def _about_runtime(recipe: Mapping[str, Any]) -> str:
    """Say which file the scores belong to, if onnxruntime ran the model."""
    file = SCORED_FILES.get(recipe.get("runtime", "transformers"))
    if file is None:
        return ""
    return (
        f" All scores above are those of `{file}` in onnxruntime, not of the PyTorch weights next to it. "
        f"`tombola predict FOLDER/{file}`, `evaluate` and `attack` run that file."
    )


def ticket_card(
    info: Mapping[str, Any], corrections: Sequence[str] = (), architecture: str | None = None
) -> str:
    """Return the model card of a ticket.

    Args:
        info: The ticket's metadata.
        corrections: The kinds of the defenses in its folder.
        architecture: The class of its model in transformers.
    """
    mask = info["mask"]
    named = re.sub(r"(\.task)?\.ya?ml$", "", public_name(str(info["recipe"]["task"])))
    return card(
        info,
        title=f"A {mask['weight_sparsity']:.0%} ticket of {info['base']['name']} for {named}"
        if mask
        else f"{info['base']['name']}, fine-tuned for {named}",
        about=_about_mask(mask) + _size(info) + _speed(info)
        if mask
        else "The dense baseline of the tickets of the same recipe: nothing is removed.",
        tag=f"{mask['granularity']}-sparsity" if mask else "dense",
        table=[
            ["evaluated on", "metric", "score", "standard error", "examples"],
            *(
                [public_name(on), metric, *figures(score)]
                for on, scores in info["metrics"].items()
                for metric, score in scores.items()
            ),
        ],
        use=[
            "import tombola",
            "",
            'ticket = tombola.Ticket.from_pretrained("path/or/hub-id")',
            "model, tokenizer = ticket.model(), ticket.tokenizer()",
        ],
        after_use=_opening(info, architecture) + _about_runtime(info["recipe"]) + _about_defense(corrections),
    )


def _about_mask(mask: Mapping[str, Any]) -> str:
    return (
        f"A subnetwork drawn by Tombola: {mask['removed']:,} of {mask['units']:,} units ({mask['granularity']}) are "
        f"removed, which is {mask['weight_sparsity']:.1%} of the prunable weights and {mask['total_sparsity']:.1%} of "
        "all parameters."
    )


def _size(info: Mapping[str, Any]) -> str:
    """Return the size of a model that was cut out."""
    if "cut" not in info:
        return ""
    now, dense = info["cut"]["parameters"], info["cut"]["dense_parameters"]
    return f" They are cut out: this model has {now:,} parameters, the dense one {dense:,}."


def _speed(info: Mapping[str, Any]) -> str:
    """Return the measured speed-ups, if any."""
    times = [
        f"{found['ratio']:.2f} times (batch size {size}{', uncertain' if found['busy'] else ''})"
        for size, found in info.get("speedup", {}).items()
    ]
    return f" It was measured to be {' and '.join(times)} as fast as the dense model." if times else ""


def _opening(info: Mapping[str, Any], architecture: str | None) -> str:
    """Explain how to open the folder with plain transformers."""
    _, _, head = (architecture or "").partition("For")
    plain = f"Plain transformers also loads the folder: `AutoModelFor{head or '…'}.from_pretrained`"
    if head == "SequenceClassification":
        plain += ', or `pipeline("text-classification", model="path/or/hub-id")`'
    if "cut" in info and info["cut"]["layout"] == "free":
        return f"{plain}, after `import tombola`."
    return f"{plain}."
