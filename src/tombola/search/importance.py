"""Structured importance: the sensitivity of the loss to heads, FFNs and neurons. (Super Tickets, section 3)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count as count_up
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from tombola.augmentations import AugmentSettings
from tombola.foundations.lazy import lazy_module
from tombola.foundations.seeds import numbered_seed
from tombola.masks.names import Scope, UnitsName
from tombola.masks.shares import whole_units
from tombola.objectives import Batch
from tombola.search import Amount, Evidence, ScorerSettings, scorer
from tombola.search.contributions import contribution_scores
from tombola.search.criteria import unit_scores
from tombola.search.random import Random, random
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

    from tombola import masks
    from tombola.masks import Group, Mask, Scores, Units
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")

KINDS = ("head", "ffn", "neuron", "layer")


def _scorable(units: str) -> str:
    if not set(units.split("+")) <= set(KINDS):
        raise ValueError(
            f"importance is defined for {', '.join(KINDS)}, or two of them combined, e.g. head+ffn"
        )
    return units


class Importance(ScorerSettings):
    """Settings of structured importance. The default is the paper's joint sweep over heads and FFNs."""

    reads_data: ClassVar[bool] = True
    trains_weights: ClassVar[bool] = True
    only_global: ClassVar[bool] = True

    method: Literal["importance"] = "importance"
    units: Annotated[UnitsName, AfterValidator(_scorable)] = Field(
        "head+ffn", description="head, ffn, neuron, layer, or heads jointly with ffn or neuron"
    )
    criterion: Literal["super_tickets", "taylor", "fisher", "mask_fisher"] = Field(
        "super_tickets",
        description="super_tickets: the published score, divided by the norm of its layer; taylor: |Σ w·g| over the "
        "unit's weights; fisher: ½ Σ (w·g)² with the gradients g of batches; taylor and fisher are comparable between "
        "layers; mask_fisher: ½ (Σ w·g)², comparable between layers and between heads and neurons",
    )
    inputs: Literal["clean", "augmented", "both"] = Field(
        "clean", description="score on the training texts, on augmented copies of them, or on both, averaged"
    )
    augment: AugmentSettings | None = Field(
        None, description="inputs: augmentations, applied to every text; by default those of train.augment"
    )
    start: Literal["pretrained", "finetuned"] = Field("finetuned", description="model whose units are scored")
    order: Literal["winning", "losing", "random"] = Field(
        "winning",
        description="units to remove first: the least important, the most important, or random ones",
    )
    min_heads: int = Field(
        1, ge=0, description="minimum heads per layer; those that would be removed last stay"
    )
    ffn_ratio: float = Field(
        5 / 6,
        gt=0,
        le=1,
        description="with heads: share of FFNs or neurons to remove, relative to the share of heads",
    )
    batches: int | None = Field(
        None, gt=0, description="training batches to score on; by default the whole training set once"
    )
    mask_number: int = Field(0, ge=0, description="order: random: index of the random mask within the run")
    preserve_layer_ratio: bool = Field(
        False,
        description="order: random: remove as many heads or neurons from each layer as the winning ticket",
    )
    train: TrainSettings | None = Field(
        None,
        description="draw.rounds: training of the small model between rounds; unset keys are inherited from `train`",
    )

    def texts_read(self, examples: int, batch_size: int) -> float:
        """Return about how many texts the scores read; a gradient takes three times a forward pass."""
        texts = examples if self.batches is None else self.batches * batch_size
        return 3.0 * texts * (2 if self.inputs == "both" else 1)

    @model_validator(mode="after")
    def _check_random_order(self) -> Self:
        for name in ("mask_number", "preserve_layer_ratio"):
            if getattr(self, name) and self.order != "random":
                raise ValueError(f"{name}: only works with order: random")
        if self.preserve_layer_ratio and self.units == "layer":
            raise ValueError(
                "preserve_layer_ratio: with units: layer, the winning ticket is the only one with its ratio; leave it "
                "out for random layers"
            )
        return self

    @field_validator("augment")
    @classmethod
    def _changes_all_texts(cls, augment: AugmentSettings | None) -> AugmentSettings | None:
        if augment is None:
            return None
        if "share" in augment.model_fields_set and augment.share != 1:
            raise ValueError(
                f"share: scoring changes every text, not {augment.share:.0%} of them; leave it out"
            )
        if augment.consistency:
            raise ValueError("consistency: only works in training")
        return augment.of_every_text()

    @model_validator(mode="after")
    def _check_criterion(self) -> Self:
        if self.units == "layer" and self.criterion == "super_tickets":
            raise ValueError(
                "criterion: super_tickets is not defined for layers; use taylor, fisher or mask_fisher"
            )
        if self.augment is not None and self.inputs == "clean":
            raise ValueError("augment: only works with inputs: augmented or both")
        return self

    @model_validator(mode="after")
    def _of_heads(self) -> Self:
        kinds = self.units.split("+")
        for name, works in (("min_heads", "head" in kinds), ("ffn_ratio", len(kinds) > 1)):
            if not works and getattr(self, name) != type(self).model_fields[name].default:
                wanted = "heads" if name == "min_heads" else "heads and another kind of unit"
                raise ValueError(f"{name}: needs units with {wanted}, not {self.units}")
        return self

    def scored(self) -> Self:
        """One pass over the data serves winning and losing tickets of all sizes."""
        order = "random" if self.order == "random" else "winning"
        chosen_by = {name: type(self).model_fields[name].default for name in ("min_heads", "ffn_ratio")}
        return self.model_copy(update={**chosen_by, "order": order, "train": None})


def choose(settings: Importance, scores: Scores, amount: Amount, scope: Scope, within: Mask | None) -> Mask:
    """Prune the whole model in one shot, ranking heads and FFNs separately; masks of one order are nested.

    Removes ⌊share · units⌋, as published, but never a head that `min_heads` protects; or exactly the given counts. A
    random order protects heads by the same rule, so that it differs only in the ranking: units are removed one after
    another, uniformly among those that may go.
    """
    from tombola.masks.drawing import draw_counts

    sign = -1.0 if settings.order == "losing" else 1.0
    ranked = masks.Scores(scores.units, {name: sign * scores[name] for name in scores})
    counts = amount if isinstance(amount, Mapping) else _counts(settings, scores.units, amount)
    return draw_counts(ranked, counts, within, min_heads=settings.min_heads)


def _counts(settings: Importance, units: Units, share: float) -> dict[str, int]:
    """Return how many units of each kind a share amounts to, not counting heads that must stay."""
    counts = {}
    for kind in units.kinds:
        of_kind = units.only(kind)
        part = share if kind == "head" or len(units.kinds) == 1 else share * settings.ffn_ratio
        kept = settings.min_heads if kind == "head" else 0
        most = sum(max(group.count - kept, 0) for group in of_kind.groups)
        counts[kind] = min(whole_units(part, of_kind.count), most)
    return counts


@scorer(Importance, choose=choose)
def importance(settings: Importance, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove the heads, FFNs, neurons or layers to whose contribution the loss is least sensitive.

    The published criterion is in `tombola.search.contributions`, the others are in `tombola.search.criteria`.
    """
    if settings.order == "random" and not settings.preserve_layer_ratio:
        return random(Random(units=settings.units, mask_number=settings.mask_number), model, units, evidence)
    sources = [evidence.batches] if settings.inputs in ("clean", "both") else []
    if settings.inputs in ("augmented", "both"):
        assert settings.augment is not None, "filled in from train.augment"
        sources.append(evidence.augmented(settings.augment))
    total = (settings.batches or 0) * len(sources)
    done = count_up(1)

    def reported(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield batch
            if total:
                evidence.progress(next(done), total)

    draws = [_values(settings, model, units, reported(batches(settings.batches))) for batches in sources]
    values = {name: torch.stack([draw[name] for draw in draws]).mean(dim=0) for name in draws[0]}
    scores = (
        normalised(units, values) if settings.criterion == "super_tickets" else masks.Scores(units, values)
    )
    return _shuffled(scores, evidence.seed, settings.mask_number) if settings.order == "random" else scores


def _values(
    settings: Importance, model: PreTrainedModel, units: Units, batches: Iterable[Batch]
) -> dict[str, Tensor]:
    """Return the units' unnormalised scores on some batches."""
    if settings.criterion == "super_tickets":
        return contribution_scores(model, units, batches)
    return unit_scores(settings.criterion, model, units, batches)


def _shuffled(scores: Scores, seed: int, number: int) -> Scores:
    """Shuffle the scores: of heads and neurons within their layer, of FFNs over all layers.

    Removing any number of the lowest then takes as many heads and neurons from each layer as before, only at random.
    """
    generator = torch.Generator().manual_seed(numbered_seed(seed, number))
    placed = {
        group.name: scores[group.name][torch.randperm(group.count, generator=generator)]
        for group in scores.units.groups
    }
    ffns = [group.name for group in scores.units.groups if group.kind == "ffn"]
    order = torch.randperm(len(ffns), generator=generator).tolist()
    return masks.Scores(
        scores.units, {**placed, **{name: scores[ffns[i]] for name, i in zip(ffns, order, strict=True)}}
    )


def normalised(units: Units, values: Mapping[str, Tensor]) -> Scores:
    """Divide the values of heads and neurons by their layer's L2 norm, those of FFNs by the norm over all layers."""
    ffns = [values[group.name] for group in units.groups if group.kind == "ffn"]
    over_layers: Tensor | None = torch.cat(ffns).norm() if ffns else None

    def norm(group: Group) -> Tensor:
        if group.kind == "ffn" and over_layers is not None:
            return over_layers
        own_norm: Tensor = values[group.name].norm()
        return own_norm

    return masks.Scores(
        units, {group.name: values[group.name] / (norm(group) + 1e-20) for group in units.groups}
    )
