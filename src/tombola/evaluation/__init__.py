"""How good a model is: predictions in data order, metrics with their standard errors, intervals over seeds."""

from tombola.evaluation.answers import normalised
from tombola.evaluation.evaluate import Evaluation, evaluate_split
from tombola.evaluation.intervals import MeanInterval, bootstrap, mean_interval, wilson
from tombola.evaluation.labels import LabelOrder, label_order
from tombola.evaluation.leakage import leakage_note, leaked
from tombola.evaluation.metrics import Score, metrics, score
from tombola.evaluation.predict import predict
from tombola.evaluation.spans import predict_spans
from tombola.evaluation.tokens import predict_tokens

__all__ = [
    "Evaluation",
    "LabelOrder",
    "MeanInterval",
    "Score",
    "bootstrap",
    "evaluate_split",
    "label_order",
    "leakage_note",
    "leaked",
    "mean_interval",
    "metrics",
    "normalised",
    "predict",
    "predict_spans",
    "predict_tokens",
    "score",
    "wilson",
]
