"""Bias models: weak models of spurious features in the training data, whose predictions debiasing losses use."""

from typing import TYPE_CHECKING

from tombola.bias.settings import BiasModel, FittedBias, bias_models
from tombola.foundations.lazy import lazily

if TYPE_CHECKING:
    from tombola.bias.files import read, read_log_probs
    from tombola.bias.fitting import Fit, fit

__all__ = ["BiasModel", "Fit", "FittedBias", "bias_models", "fit", "read", "read_log_probs"]

__getattr__ = lazily(
    __name__, {"Fit": "fitting", "fit": "fitting", "read": "files", "read_log_probs": "files"}
)
