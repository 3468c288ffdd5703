"""The recipe of one ticket, typed and checked."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.bias.settings import BiasModel
from tombola.defenses import DefenseList
from tombola.foundations.settings import Settings
from tombola.masks.names import STRUCTURED, Scope, is_structured
from tombola.masks.pattern_names import implied_sparsity
from tombola.recipe.retraining import check_control, check_rounds
from tombola.recipe.sections import (
    AttackSettings,
    DataSettings,
    DrawSettings,
    EvaluateSettings,
    MeasureSettings,
    RetrainSettings,
    Runtime,
    WantedPrecision,
)
from tombola.search import SearchSettings, lowest, searches
from tombola.training.settings import DEVICE, TrainSettings


class Recipe(Settings):
    """One ticket: a model, a task, a search, a draw, a retraining and an evaluation."""

    hints: ClassVar[dict[str, str]] = {
        "device": DEVICE,
        "output": "Use --output DIR.",
        "store": "Use --store DIR, or TOMBOLA_STORE.",
        "workers": "Use --workers N.",
        "base_model": "Write it as model.",
        "dataset": "Write it as task, and the data's folder as data.folder.",
        "lr": "Write it as train.learning_rate.",
        "fp16": "Write it as precision=fp16.",
        "bf16": "Write it as precision=bf16.",
        "metric": "Metrics belong to the task: write them as metrics in its task file.",
        "metrics": "Metrics belong to the task: write them in its task file.",
        "labels": "Labels belong to the task: write them in its task file.",
    }

    name: str = Field("run", description="name in tables and folders")
    about: str = Field("", description="one-sentence description")
    plugins: tuple[str, ...] = Field(
        (), description="Python files or modules that define methods, attacks, tasks … used in the recipe"
    )
    model: str = Field(description="name from `tombola list models`, local folder or hub id")
    pooler: Literal["own", "new"] = Field(
        "own",
        description="new: initialise the pooler like the head, for sentence encoders, whose pooler was never trained",
    )
    task: str = Field(description="name of a task, or path of a task file")
    seed: int = Field(
        1, ge=0, lt=2**32, description="seed of the head, the order of the data, dropout and random tickets"
    )
    precision: WantedPrecision = Field(
        "auto", description="auto: bf16 where a trial on this machine ran faster than fp32, else fp32"
    )
    data: DataSettings = Field(DataSettings(), description="where the data is, and how much of it to use")
    bias: BiasModel | None = Field(None, description="model of the data's bias, for debiasing losses")
    defend: DefenseList = Field(
        (),
        description="defenses that correct every text before the tokenizer, in training, evaluation, attacks and the "
        "finished ticket: by name or with settings, in order, e.g. [unicode, spelling]",
    )
    train: TrainSettings = Field(TrainSettings(), description="fine-tuning of the dense model")
    search: SearchSettings | None = Field(
        None, description="how to find the ticket; without a search the model stays dense"
    )
    draw: DrawSettings = Field(DrawSettings(), description="how much to remove, and in which pattern")
    retrain: RetrainSettings | None = Field(
        RetrainSettings(), description="training of the ticket; null: evaluate it without training"
    )
    evaluate: EvaluateSettings = Field(EvaluateSettings(), description="data sets to score the result on")
    attack: AttackSettings | None = Field(None, description="adversarial attacks on the result")
    measure: MeasureSettings | None = Field(None, description="measurement of the result's size and speed")
    runtime: Runtime = Field(
        "transformers",
        description="runtime of the finished model for evaluation, attacks and timing: transformers, or onnxruntime in "
        "32 bits or with 8-bit weights",
    )

    @property
    def scope(self) -> Scope:
        """The units that are ranked together in the draw: the draw's scope, or the search's usual one."""
        usual: Scope = "global" if self.search is None else self.search.usual_scope
        return self.draw.scope or usual

    @property
    def max_length(self) -> int:
        """The length that the finished model is trained, evaluated, attacked and timed with."""
        retrained = self.search is not None and self.retrain is not None
        return (self.retrain if retrained and self.retrain else self.train).max_length

    @model_validator(mode="after")
    def _check_watched_training(self) -> Self:
        keys = [name for name in ("every", "best") if getattr(self.evaluate, name) is not None]
        if keys and self.search is not None and self.retrain is None:
            raise ValueError(
                f"evaluate.{keys[0]}: needs a training of the ticket, but retrain is null; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_searched_weights(self) -> Self:
        search, retrain = self.search, self.retrain
        if search is None:
            return self
        if retrain is not None and retrain.start == "searched":
            if not search.changes_weights:
                raise ValueError(
                    f"retrain.start: searched needs weights trained by the search, but {search.method} changes none "
                    "here: use search: {method: learned, weights: true} or sparsegpt, or start: finetuned"
                )
            if search.task is not None:
                raise ValueError(
                    "retrain.start: searched refers to weights of another task (search.task), but only the mask is "
                    "transferred: use start: pretrained or finetuned"
                )
        own = search.changes_weights and search.task is None
        if own and retrain is None and self.attack is not None and self.attack.every_epoch:
            raise ValueError(
                "attack.every_epoch: needs a training of the ticket, but with retrain: null the search trains the "
                "weights; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_scope(self) -> Self:
        search, draw = self.search, self.draw
        if search is None:
            return self
        if draw.scope == "row" and search.units != "weight" and search.method != "given":
            raise ValueError(f"draw.scope: row ranks single weights, but search.units is {search.units}")
        if search.only_global and draw.scope not in (None, "global"):
            raise ValueError(
                f"draw.scope: {search.method} ranks the units of the whole model; use global, or leave it out"
            )
        if search.layerwise and draw.scope == "global":
            advice = ", or search.sequential: false" if hasattr(search, "sequential") else ""
            raise ValueError(f"draw.scope: {search.method} prunes layer by layer; use local or row{advice}")
        if draw.pattern is not None:
            self._check_pattern(search, draw.pattern)
        return self

    def _check_pattern(self, search: SearchSettings, pattern: str) -> None:
        if search.method == "given":
            raise ValueError("draw.pattern: does not apply to a given mask; leave it out")
        if search.units != "weight":
            raise ValueError(f"draw.pattern: needs search.units: weight, not {search.units}")
        if search.biases:
            raise ValueError("draw.pattern: only applies to matrices; leave out search.biases")
        found = searches[search.method]
        if found.choose is not lowest:
            raise ValueError(f"draw.pattern: {search.method} decides by itself what to remove; leave it out")
        rounds = found.scorer is None and not search.layerwise and search.method != "learned"
        if rounds and implied_sparsity(pattern) is not None:
            raise ValueError(
                f"draw.pattern: {search.method} draws more than once, but {pattern} fixes the sparsity; use blocks "
                "such as 16x16, or a search that draws once"
            )

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        counts = self.draw.counts
        if counts is None or self.search is None:
            return self
        if searches[self.search.method].scorer is None:
            raise ValueError(
                f"draw.heads, draw.ffns: {self.search.method} draws more than once; set a sparsity"
            )
        if self._has_ffn_ratio:
            raise ValueError("draw.heads, draw.ffns: replace search.ffn_ratio; remove one or the other")
        for kind in counts:
            if kind not in self.search.units.split("+"):
                raise ValueError(f"draw.{kind}s: needs search.units with {kind}, not {self.search.units}")
        return self

    @model_validator(mode="after")
    def _check_shrinking(self) -> Self:
        search, retrain = self.search, self.retrain
        cuts = search is not None and retrain is not None and retrain.shrink and search.method != "given"
        if cuts and not self._structured:
            raise ValueError(
                "retrain.shrink: single weights cannot be cut out; set search.units to one of "
                f"{', '.join(sorted(STRUCTURED))}"
            )
        if search is not None:
            check_control(search, self.draw, self.retrain)
        return self

    @property
    def _structured(self) -> bool:
        return self.search is not None and is_structured(self.search.units)

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        search, target = self.search, self.draw.target
        if search is None or target is None:
            return self
        key = "layout" if target.quantity == "sparsity" else target.quantity
        if not self._structured:
            raise ValueError(f"draw.{key}: needs search.units such as head+neuron or layer")
        if searches[search.method].scorer is None and search.method != "learned":
            raise ValueError(f"draw.{key}: {search.method} does not draw once from scores; use importance")
        if getattr(search, "order", None) == "losing":
            raise ValueError(
                f"draw.{key}: keeps the most important units, but search.order: losing removes them first; set a "
                "sparsity with a free layout"
            )
        if self._has_ffn_ratio:
            raise ValueError(
                f"draw.{key}: weighs heads against FFNs and neurons by their cost; leave out search.ffn_ratio, or set "
                "a sparsity with a free layout"
            )
        if search.layers is not None:
            raise ValueError(
                f"draw.{key}: counts the cost of all layers, but search.layers prunes only some; remove one of them, "
                "or set a sparsity with a free layout"
            )
        budget = getattr(search, "effective_budget", None)
        if budget is not None and budget.knows_sparsity and target.quantity != "sparsity":
            raise ValueError(
                f"draw.{target.quantity}: the budget {budget.kind} needs a sparsity; use search.budget: {{kind: l0}}"
            )
        if self.draw.rounds > 1:
            check_rounds(search, self.draw, self.retrain)
        return self

    @property
    def _has_ffn_ratio(self) -> bool:
        """Whether the search sets how many FFNs or neurons to remove relative to heads."""
        ratio = type(self.search).model_fields.get("ffn_ratio") if self.search is not None else None
        return ratio is not None and getattr(self.search, "ffn_ratio", None) != ratio.default

    @model_validator(mode="after")
    def _check_attack_by_epoch(self) -> Self:
        if self.runtime != "transformers" and self.attack is not None and self.attack.every_epoch:
            raise ValueError("attack.every_epoch: needs runtime: transformers; remove one of them")
        return self

    @model_validator(mode="after")
    def _check_search_inputs(self) -> Self:
        inputs = getattr(self.search, "inputs", "clean")
        augment = getattr(self.search, "augment", None) or self.train.augment
        if inputs != "clean" and augment is None:
            raise ValueError(
                f"search.inputs: {inputs} needs augmentations: add some, e.g. search.augment: {{of: [typos]}}"
            )
        return self

    @property
    def trainings(self) -> dict[str, TrainSettings]:
        """The settings of all trainings by their keys, as far as the recipe has them."""
        searching = getattr(self.search, "train", None)
        trainings = {"train": self.train, "retrain": self.retrain, "search.train": searching}
        return {key: settings for key, settings in trainings.items() if settings is not None}

    @property
    def uses_bias(self) -> bool:
        """Whether the bias model has an effect: for a loss, or since its file decides which examples there are."""
        drops = getattr(self.bias, "missing", None) == "drop"
        return drops or any(part.loss.needs_bias for part in self.trainings.values())

    @model_validator(mode="after")
    def _check_bias_model(self) -> Self:
        for name, part in self.trainings.items():
            if part.loss.needs_bias and self.bias is None:
                raise ValueError(
                    f"{name}.loss: {part.loss.kind} needs a bias model: add one, "
                    "e.g. bias: {method: lexical_overlap}"
                )
        return self
