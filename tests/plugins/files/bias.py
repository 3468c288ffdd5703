"""A bias model: how long the text is."""

from typing import Literal

import numpy as np

from tombola.bias import FittedBias, bias_models


@bias_models.register
class TextLength(FittedBias):
    """Logistic regression on the number of words."""

    method: Literal["text_length"] = "text_length"

    def features(self, split, model):
        return np.array([[sum(len(text.split()) for text in texts)] for texts in split.texts], dtype=float)
