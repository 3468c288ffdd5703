"""Values against scikit-learn and scipy, standard errors against brute-force resampling of examples."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from tests.evaluation.resampling import standard_error
from tombola.errors import DataError, ModelError, PluginError, UnknownName
from tombola.evaluation.intervals import wilson
from tombola.evaluation.metrics import metrics, score
from tombola.evaluation.scores import Score
from tombola.tasks import Answers, Task, task_names

SKLEARN = {
    "accuracy": sk.accuracy_score,
    "f1": lambda y, p: sk.f1_score(y, p, zero_division=0),
    "macro_f1": lambda y, p: sk.f1_score(y, p, average="macro", zero_division=0),
    "weighted_f1": lambda y, p: sk.f1_score(y, p, average="weighted", zero_division=0),
    "mcc": sk.matthews_corrcoef,
}


def one_hot(predictions: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[predictions]


def noisy(n: int, classes: int, right: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, n, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    return np.where(rng.random(n) < right, labels, rng.integers(classes, size=n)), labels


def test_tasks_may_name_every_metric_and_no_other() -> None:
    for task in map(Task.named, task_names()):
        assert all(task.kind in metrics[name].kinds for name in task.metrics)
    assert metrics["f1"].labels == 2
    assert all(metric.about for _, metric in metrics.items())
    with pytest.raises(UnknownName, match="'accuracy'"):
        metrics["acuracy"]


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.integers(2, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None)
def test_values_equal_scikit_learn(classes: int, pairs: list[tuple[int, int]]) -> None:
    predictions, labels = np.array(pairs).T % classes
    for name, reference in SKLEARN.items():
        if name != "f1" or classes == 2:
            ours = metrics[name](one_hot(predictions, classes), labels)
            assert ours.value == pytest.approx(reference(labels, predictions), abs=1e-12)
            assert ours.n == len(labels)
            assert ours.stderr >= 0


def class_f1(p: np.ndarray, y: np.ndarray, label: int) -> float:
    return 2 * ((p == label) & (y == label)).sum() / max(1, (p == label).sum() + (y == label).sum())


def macro(p: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean([class_f1(p, y, label) for label in np.union1d(p, y)]))


BY_HAND = {  # scikit-learn is too slow to be called on hundreds of resamples
    "accuracy": lambda p, y: (p == y).mean(),
    "f1": lambda p, y: class_f1(p, y, 1),
    "macro_f1": macro,
    "weighted_f1": lambda p, y: (1 - y.mean()) * class_f1(p, y, 0) + y.mean() * class_f1(p, y, 1),
    "mcc": lambda p, y: np.corrcoef(p, y)[0, 1],
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize(("n", "right"), [(150, 0.5), (400, 0.9)])
def test_standard_errors_equal_resampling_examples(name: str, n: int, right: float) -> None:
    predictions, labels = noisy(n, 2, right)
    slow = standard_error(BY_HAND[name], predictions, labels, resamples=2000, seed=1)
    ours = metrics[name](one_hot(predictions, 2), labels)
    assert ours.value == pytest.approx(BY_HAND[name](predictions, labels))
    assert ours.stderr == pytest.approx(slow, rel=0.1)


def test_three_classes_are_resampled_too() -> None:
    predictions, labels = noisy(300, 3, 0.6)
    slow = standard_error(macro, predictions, labels, resamples=2000, seed=1)
    assert metrics["macro_f1"](one_hot(predictions, 3), labels).stderr == pytest.approx(slow, rel=0.1)


def test_accuracy_has_the_binomial_error() -> None:
    ours = metrics["accuracy"](one_hot(np.array([1, 1, 1, 0]), 2), np.array([1, 1, 1, 1]))
    assert ours == Score(0.75, np.sqrt(0.75 * 0.25 / 4), 4, "binomial")


@pytest.mark.parametrize(("name", "reference"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr)])
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_correlations_equal_scipy_and_their_errors_resampling(
    name: str, reference: object, noise: float
) -> None:
    rng = np.random.default_rng(0)
    labels = rng.normal(size=400)
    logits = (labels + noise * rng.normal(size=400)).astype(np.float32)[:, None]
    ours = metrics[name](logits, labels)
    slow = standard_error(lambda p, y: reference(p, y)[0], logits[:, 0], labels, resamples=400, seed=1)  # type: ignore[operator]
    assert ours.value == pytest.approx(reference(logits[:, 0], labels)[0])  # type: ignore[operator]
    assert ours.stderr == pytest.approx(slow, rel=0.2)


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_constant_predictions_correlate_with_nothing(name: str) -> None:
    assert metrics[name](np.zeros((10, 1)), np.arange(10.0)).value == 0
    with pytest.raises(DataError, match="at least 4 examples"):
        metrics[name](np.zeros((3, 1)), np.arange(3.0))


def test_score_gives_the_tasks_metrics_with_the_headline_first() -> None:
    scores = score(Task.named("mrpc"), np.array([[0.1, 0.9], [0.8, 0.2]]), [1, 1])
    assert list(scores) == ["accuracy", "f1"]
    assert scores["f1"].value == pytest.approx(2 / 3)
    content = json.loads(json.dumps(scores["f1"].as_dict()))
    assert Score.from_dict(content) == scores["f1"]


def test_what_cannot_be_scored() -> None:
    with pytest.raises(ModelError, match="for 1 of 2 examples are NaN or infinite"):
        score(Task.named("sst2"), np.array([[np.nan, 0], [0, 1]]), [0, 1])
    with pytest.raises(DataError, match="2 predictions for 3 labels"):
        score(Task.named("sst2"), np.zeros((2, 2)), [0, 1, 1])


def test_score_intervals() -> None:
    assert Score(0.9, 0.03, 100, "binomial").interval() == wilson(90, 100)
    assert Score(0.99, 0.1, 50, "of my own error").interval()[1] == pytest.approx(0.99 + 1.959964 * 0.1)


@pytest.mark.parametrize(("n", "noise"), [(12, 0.3), (80, 1.0), (80, 0.01)])
def test_the_interval_of_a_correlation_is_fishers(n: int, noise: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = x + noise * rng.normal(size=n)
    expected = stats.pearsonr(x, y).confidence_interval()
    assert metrics["pearson"](x[:, None], y).interval() == pytest.approx((expected.low, expected.high))


def test_a_perfect_correlation_has_no_width() -> None:
    assert Score(-1.0, 0.0, 10, "Fisher z").interval() == (-1.0, -1.0)


def test_the_interval_of_a_perfect_f1_or_auc_is_not_a_point() -> None:
    labels = np.array([0, 1] * 10)
    assert metrics["macro_f1"](one_hot(labels, 2), labels).interval() == wilson(20, 20)
    assert metrics["auc"](one_hot(labels, 2), labels).interval() == wilson(20, 20)
    answers = [Answers(("a film",), (0, 6))] * 20
    assert metrics["squad_f1"](["film"] * 20, answers).interval() == (wilson(20, 20)[0], 1.0)


def test_auc_equals_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    odds = np.round(rng.normal(size=300) + labels, 1)  # rounded, so that many are equal
    logits = np.stack([-odds / 2, odds / 2], axis=1)
    found = metrics["auc"](logits, labels)
    assert found.value == pytest.approx(sk.roc_auc_score(labels, odds), abs=1e-12)
    drawn = [rng.integers(300, size=300) for _ in range(400)]
    brute = np.std([sk.roc_auc_score(labels[one], odds[one]) for one in drawn])
    assert found.stderr == pytest.approx(brute, rel=0.15)
    assert metrics["auc"](-logits, labels).value == pytest.approx(1 - found.value)


def test_auc_does_not_depend_on_the_cut_and_needs_both_labels() -> None:
    labels = np.array([0, 0, 1, 1])
    logits = np.array([[9.0, 0.0], [8.0, 0.0], [7.0, 0.0], [6.0, 0.0]])  # all of them the first label
    assert metrics["auc"](logits, labels).value == 1.0
    assert metrics["auc"](logits, labels).stderr == 0.0
    assert metrics["accuracy"](logits, labels).value == 0.5
    with pytest.raises(DataError, match="both labels"):
        metrics["auc"](logits[:2], labels[:2])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (0.5, "metric mine: must return a tombola.evaluation.scores.Score, .* not a float"),
        (Score(float("nan"), 0.1, 4, "normal"), r"metric mine: the value \(nan\) and .* must be finite"),
        (Score(0.5, float("inf"), 4, "normal"), r"the standard error \(inf\) must be finite"),
    ],
)
def test_what_a_metric_of_a_plugin_returns_is_checked(
    monkeypatch: pytest.MonkeyPatch, returned: object, message: str
) -> None:
    monkeypatch.setattr("tombola.evaluation.metrics.metrics", {"mine": lambda logits, labels: returned})
    task = Task.named("sst2").model_copy(update={"metrics": ["mine"]})
    with pytest.raises(PluginError, match=message):
        score(task, one_hot(np.array([0, 1]), 2), np.array([0, 1]))
