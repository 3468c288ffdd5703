"""The known bias that `data.synthetic_bias` adds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tombola.bias.settings import FittedBias, bias_models
from tombola.errors import RecipeError
from tombola.tasks.synthetic import PREFIX

if TYPE_CHECKING:
    from tombola.tasks import Split


@bias_models.register
class SyntheticPrefix(FittedBias):
    """The known bias of `data.synthetic_bias`: a linear model on the prefix of an example, if any."""

    method: Literal["synthetic"] = "synthetic"

    def features(self, split: Split, model: Path | None) -> list[list[str]]:
        """Return the prefix of each example."""
        return [[prefix] for prefix in split.columns.get(PREFIX, [""] * len(split))]

    def fit(self, split: Split, seed: int, model: Path | None = None, file: Path | None = None) -> Any:
        """Fit to data that has prefixes."""
        if PREFIX not in split.columns:
            raise RecipeError("bias: synthetic models the bias of data.synthetic_bias, which is not set")
        return super().fit(split, seed, model, file)
