"""Build the stages of one cell's recipe. Equal calls return stages with equal keys, which run once.

Stages that cells may have in common are made through `shared`, so that a plan contains and hashes each of them once.
Evaluations, attacks and measurements of a cell's final model are not: no other cell has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tombola.attacks.base import Attack as AttackRecipe
from tombola.attacks.resources import ENCODER, MLM, NEIGHBOURS, PROPOSALS, Resources
from tombola.errors import RecipeError
from tombola.foundations.caching import shared
from tombola.foundations.hardware.machine import check_device, timed_on
from tombola.foundations.hardware.threads import threads_of
from tombola.pipeline.limits import available, require_single_label
from tombola.pipeline.named_data import find_texts
from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.pipeline.stages.attack import AttackStage
from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage, cut_of
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.evaluate import Evaluate
from tombola.pipeline.stages.export import ExportStage, OnnxStage, Quantise
from tombola.pipeline.stages.fit import FitStage
from tombola.pipeline.stages.given import Base, Combine, GivenStage, find_mask
from tombola.pipeline.stages.latency import Latency
from tombola.pipeline.stages.measure import Measure, exported_dense
from tombola.pipeline.stages.perturb import Perturb
from tombola.pipeline.stages.prune import Prune
from tombola.pipeline.stages.score import UnitScores
from tombola.pipeline.stages.shrink import Shrink
from tombola.pipeline.trainings import TrainingBuilder, augments_by_neighbours
from tombola.recipe.drawing import TIMED
from tombola.search import SearchSettings
from tombola.words.lexicon import is_english


class CellBuilder(TrainingBuilder):
    """Builds every kind of stage for a cell of a grid, as searches need it (`search.planning.StageBuilder`).

    Args:
        recipe: The recipe of one cell.
        precision: The precision; `auto` is resolved for this machine.
    """

    def score(self, scorer: SearchSettings, of: ModelStage[Any] | None = None) -> UnitScores:
        """Plan scores of a model's units, for draws at any sparsity."""
        search = self._stage_settings(scorer)
        return shared(
            UnitScores,
            model=self.model,
            data=self.data,
            search=search,
            seed=self.recipe.seed,
            max_length=self._scored_length(scorer),
            defend=self.defend if scorer.reads_data else None,
            neighbours=NEIGHBOURS if augments_by_neighbours(getattr(search, "augment", None)) else None,
            of=of,
        )

    def draw(
        self,
        scorer: SearchSettings,
        sparsity: float,
        of: ModelStage[Any] | None = None,
        within: MaskStage | None = None,
        scores: ScoreStage | None = None,
        progress: float = 1.0,
        pruned: Prune | None = None,
    ) -> Draw | FitStage:
        """Plan a mask that is drawn from the scores of a model, or from existing scores."""
        drawn = self.recipe.draw
        if drawn.target is not None:
            return self._fit(scorer, scores or self.score(scorer, of), within, progress)
        return shared(
            Draw,
            model=self.model,
            data=self.data,
            search=self._stage_settings(scorer),
            sparsity=sparsity if drawn.counts is None else None,
            heads=drawn.heads,
            ffns=drawn.ffns,
            scope=self.recipe.scope,
            seed=self.recipe.seed,
            max_length=self._scored_length(scorer),
            defend=self.defend if scorer.reads_data else None,
            of=of,
            within=within,
            scores=scores,
            pattern=drawn.pattern,
            pruned=pruned,
        )

    def prune(self, settings: SearchSettings, sparsity: float, of: ModelStage[Any] | None = None) -> Prune:
        """Plan a model that is pruned layer by layer, with updates of the remaining weights."""
        return shared(
            Prune,
            model=self.model,
            data=self.data,
            search=self._stage_settings(settings),
            sparsity=sparsity,
            scope=self.recipe.scope,
            seed=self.recipe.seed,
            max_length=self._scored_length(settings),
            pattern=self.recipe.draw.pattern,
            of=of,
            defend=self.defend,
        )

    @property
    def rounds(self) -> int:
        """The number of steps in which units are removed."""
        return self.recipe.draw.rounds

    def _fit(
        self, scorer: SearchSettings, scores: ScoreStage, within: MaskStage | None, progress: float
    ) -> FitStage:
        """Plan a mask that meets the draw's target."""
        drawn, target = self.recipe.draw, self.recipe.draw.target
        assert target is not None
        fit = shared(
            FitStage,
            model=self._timed_model() if target.quantity in TIMED else self.model,
            data=self.data,
            search=self._stage_settings(scorer),
            scores=scores,
            quantity=target.quantity,
            value=target.value,
            layout=drawn.layout,
            layers=drawn.layers,
            multiple=drawn.multiple,
            seed=self.recipe.seed,
            latency=self._latency() if target.quantity in TIMED else None,
            defend=self.defend if target.quantity in TIMED else None,
            within=within,
            progress=progress,
        )
        shared(fit.check)
        return fit

    def _latency(self) -> Latency:
        """Plan the latency table of the model's geometry on this machine."""
        drawn = self.recipe.draw
        kinds = set(self.recipe.search.units.split("+")) if self.recipe.search else set()
        family = self.model.family()
        free_heads = family is not None and family.config is not None and family.config.free_heads
        texts = None
        if drawn.length is None:
            texts = find_texts(self.recipe.data, self.recipe.task, self.recipe.evaluate.on)
        return shared(
            Latency,
            geometry=self.model.geometry(),
            processor=timed_on(drawn.device),
            batch_sizes=drawn.batch_size,
            threads=threads_of(drawn.threads),
            multiple=drawn.multiple,
            length=drawn.length,
            max_length=None if texts is None else self.recipe.max_length,
            model=self._timed_model(),
            data=texts,
            task=self.data,
            fewer_heads="head" in kinds and (drawn.layout == "free" or free_heads),
            fewer_neurons=bool({"neuron", "ffn"} & kinds),
        )

    def _timed_model(self) -> ModelSource:
        """Return the model on the device on which it is timed."""
        device = self.recipe.draw.device
        return self.model if device == "cpu" else replace(self.model, device=check_device(device))

    def shrink(
        self, mask: MaskStage, of: ModelStage[Any] | None = None, within: MaskStage | None = None
    ) -> Shrink:
        """Plan the small model that a mask cuts out of a model."""
        drawn, search = self.recipe.draw, self.recipe.search
        whole_layers = search is not None and search.units == "layer"
        return shared(
            Shrink,
            model=self.model,
            data=self.data,
            mask=mask,
            layout="uniform" if whole_layers else drawn.layout,
            seed=self.recipe.seed,
            of=of,
            within=within,
            multiple=drawn.multiple,
        )

    def _scored_length(self, scorer: SearchSettings) -> int | None:
        return self.recipe.train.max_length if scorer.reads_data else None

    def given(self, masks: Sequence[str], combine: Combine, base: Base) -> GivenStage:
        """Plan a combination of masks from files, for the pre-trained model or any model of the same geometry."""
        files = tuple(find_mask(mask) for mask in masks)
        return shared(GivenStage, model=self.model, data=self.data, masks=files, combine=combine, base=base)

    def perturb(self, mask: MaskStage, share: float) -> Perturb:
        """Plan the mask with a share of its units swapped."""
        return shared(Perturb, mask=mask, share=share, seed=self.recipe.seed)

    def evaluate(
        self,
        on: str,
        model: ModelStage[Any],
        mask: MaskStage | None,
        also_trained: tuple[DataSource, ...] = (),
    ) -> Evaluate:
        """Plan the model's scores on one data set; `also_trained` is further data that its mask was found on."""
        return Evaluate(
            model=model,
            mask=mask,
            data=self.split(on, self.recipe.data.evaluation),
            trained=self.data,
            also_trained=also_trained,
            max_length=self.recipe.max_length,
            precision=self.precision,
        )

    def attack(
        self,
        attack: AttackRecipe,
        model: ModelStage[Any],
        mask: MaskStage | None,
        epoch: int | None = None,
    ) -> AttackStage:
        """Plan an attack on the model, or on the model after an epoch."""
        settings = self.recipe.attack
        assert settings is not None
        require_single_label("attack", self.data.definition, "leave out `attack`")
        data = self.split(settings.on, None)
        language = data.definition.language
        needed = Resources(
            settings.vectors,
            settings.encoder or ENCODER,
            settings.mlm,
            words=settings.lexicon,
            language=language,
        )
        needed.require(attack)
        encoder = settings.encoder or (ENCODER if is_english(language) else None)
        return AttackStage(
            model=model,
            mask=mask,
            data=data,
            trained=self.data,
            attack=attack,
            n=available("attack.n", settings.n, data, "attacked"),
            seed=settings.seed,
            max_length=self.recipe.max_length,
            precision=self.precision,
            query_budget=settings.query_budget,
            vectors=FileSource.find(settings.vectors, "attack.vectors") if settings.vectors else None,
            mlm=ModelSource.find(settings.mlm) if settings.mlm else None,
            encoder=ModelSource.find(encoder) if encoder else None,
            neighbours=needed.bundled_neighbours(attack),
            proposals=PROPOSALS if MLM in attack.needs else None,
            lexicon=FileSource.find(settings.lexicon, "attack.lexicon") if settings.lexicon else None,
            language=language,
            epoch=epoch,
        )

    def export(self, model: ModelStage[Any], mask: MaskStage | None) -> OnnxStage | None:
        """Plan the ONNX export of the model, if the recipe evaluates that."""
        if self.recipe.runtime == "transformers":
            return None
        exported = ExportStage(model=model, mask=None if cut_of(model) is not None else mask)
        return Quantise(exported=exported) if self.recipe.runtime == "onnx_int8" else exported

    def measure(
        self, model: ModelStage[Any], mask: MaskStage | None, exported: OnnxStage | None = None
    ) -> Measure:
        """Plan the measurement of the model's size and speed, after shrinking it by its mask or exporting it."""
        settings = self.recipe.measure
        assert settings is not None
        if check_device(settings.device) != "cpu" and exported is not None:
            raise RecipeError(
                "measure.device: onnxruntime runs models on the cpu; leave out runtime, or measure on the cpu"
            )
        cut = cut_of(model)
        assert cut is None or isinstance(cut, Shrink)
        of_task = settings.length is None
        return Measure(
            model=model,
            mask=mask if cut is None else None,
            cut=cut,
            exported=exported,
            reference=exported_dense(model, cut) if exported is not None else None,
            measure=settings,
            processor=timed_on(settings.device),
            threads=threads_of(settings.threads),
            data=find_texts(self.recipe.data, self.recipe.task, self.recipe.evaluate.on) if of_task else None,
            max_length=self.recipe.max_length if of_task else None,
        )
