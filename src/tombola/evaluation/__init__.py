"""How good a model is: predictions in data order, metrics with their standard errors, intervals over seeds."""

from tombola.evaluation.evaluate import Evaluation, evaluate_split
from tombola.evaluation.intervals import MeanInterval, bootstrap, mean_interval, wilson
from tombola.evaluation.metrics import Score, metrics, score
from tombola.evaluation.predict import predict

__all__ = [
    "Evaluation",
    "MeanInterval",
    "Score",
    "bootstrap",
    "evaluate_split",
    "mean_interval",
    "metrics",
    "predict",
    "score",
    "wilson",
]
