"""Bias models: weak models of what is spurious in a task's training data, whose predictions debiasing losses use."""

from tombola.bias.files import read, read_log_probs
from tombola.bias.fitting import Fit, fit
from tombola.bias.settings import BiasModel

__all__ = ["BiasModel", "Fit", "fit", "read", "read_log_probs"]
