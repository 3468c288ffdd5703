"""Lexical overlap: how much of the second text occurs in the first. (Clark et al. 2019)"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tombola.bias.settings import FittedBias, bias_models
from tombola.errors import RecipeError, UnknownName

if TYPE_CHECKING:
    import numpy as np

    from tombola.tasks import Split, Task


@bias_models.register
class LexicalOverlap(FittedBias):
    """Logistic regression on how much of the second text occurs in the first. (Clark et al. 2019)

    It separates one label from the rest; the other labels share the remaining probability equally.
    """

    method: Literal["lexical_overlap"] = "lexical_overlap"
    label: str | None = Field(
        None, description="label that overlap suggests; by default entailment, or else the first"
    )
    feature_set: Literal["ours", "published"] = Field(
        "ours",
        description="both: all words contained, contiguous, share of words, mean and minimum similarity; ours: log "
        "length ratio; published: second-lowest similarity, log length difference, and a default strength of 100",
    )
    balanced: bool = Field(
        True,
        description="weight the label and the rest equally, as published; false: keep their frequencies in the "
        "training data; otherwise a weak main model may never predict the label",
    )
    vectors: str = Field("minilm", description="model whose input embeddings give the similarity of words")

    @model_validator(mode="before")
    @classmethod
    def _published_strength(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("feature_set") == "published":
            return {"strength": 100.0, **raw}
        return raw

    @model_serializer(mode="wrap")
    def _with_tag(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write out the strength if it depends on the features, since it is then not a plain default."""
        strength = {"strength": self.strength} if self.feature_set == "published" else {}
        return {"method": self.method, **strength, **fields(self)}

    @property
    def reads_model(self) -> str | None:
        """The model that provides the word vectors."""
        return self.vectors

    @property
    def class_weight(self) -> str | None:
        """The class weight for scikit-learn: balanced, as published, unless the settings turn it off."""
        return "balanced" if self.balanced else None

    def features(self, split: Split, model: Path | None) -> np.ndarray:
        """Return six or seven numbers per pair."""
        from tombola.bias.overlap import overlap_features
        from tombola.models.finding import find_model

        if len(split.task.text) != 2:
            raise RecipeError(
                f"bias: lexical_overlap needs pairs of texts, but {split.task.name} has one text"
            )
        folder = model or find_model(self.vectors).folder
        return overlap_features(split.texts, folder, self.feature_set)

    def targets(self, split: Split) -> np.ndarray:
        """Return whether each label is the one that overlap suggests."""
        import numpy as np

        targets: np.ndarray = (np.asarray(split.labels) == self.label_number(split.task)).astype(np.int64)
        return targets

    def spread(self, log_probs: np.ndarray, classes: Sequence[int], full: np.ndarray, task: Task) -> None:
        """Write the label's log-probability, and share the rest equally among the others."""
        import numpy as np

        full[:] = (log_probs[:, 0] - np.log(task.num_labels - 1))[:, None]
        full[:, self.label_number(task)] = log_probs[:, 1]

    def label_number(self, task: Task) -> int:
        """Return the index of the label that overlap suggests."""
        labels = task.labels or []
        label = self.label or ("entailment" if "entailment" in labels else labels[0])
        if label not in labels:
            raise RecipeError(str(UnknownName(f"label of {task.name}", label, labels, where="bias.label")))
        return labels.index(label)
