"""The verdict of a compression: numbers in the unit of their metric, doubts, and a place in the result's file."""

from pathlib import Path

import pytest

from tests.results.builder import cell, measured, result
from tombola.evaluation.scores import Score
from tombola.pipeline.stages import evaluate
from tombola.results.compression import judge
from tombola.results.result import Result


class AnyStore:
    """A store whose stages nobody reads."""

    def open(self, stage):
        return Path(stage)


def verdict(monkeypatch, tmp_path, *cells, right=None):
    monkeypatch.setattr(evaluate, "read_correct", lambda folder: right)
    found = judge(result(*cells, folder=tmp_path), AnyStore(), 1.0, tmp_path / "model")
    assert Result.load(tmp_path).record.verdict == found.verdict
    return found.verdict


def test_a_correlation_is_a_number_and_its_loss_in_hundredths(monkeypatch, tmp_path):
    before, after = ({"test": {"pearson": Score(value, 0.01, 90, "Fisher z")}} for value in (0.8, 0.753))
    text = verdict(monkeypatch, tmp_path, cell("original", before), cell("ticket", after, 0.5))
    assert text == (
        "The ticket has pearson 0.753 against 0.800; it loses 4.7 hundredths of pearson, more than the 1 allowed."
    )


def test_a_loss_of_one_is_singular(monkeypatch, tmp_path):
    before, after = ({"test": {"pearson": Score(value, 0.01, 90, "Fisher z")}} for value in (0.8, 0.795))
    text = verdict(monkeypatch, tmp_path, cell("original", before), cell("ticket", after, 0.5))
    assert text.endswith("; it loses at most 1 hundredth of pearson, as requested.")


def test_the_interval_of_the_accuracy_does_not_stand_beside_another_score(monkeypatch, tmp_path):
    before, after = ({"test": {"macro_f1": Score(value, 0.01, 90, "bootstrap")}} for value in (0.8, 0.753))
    cells = [cell("original", before), cell("ticket", after, 0.5)]
    text = verdict(monkeypatch, tmp_path, *cells, right=[True, False] * 50)
    assert (
        text == "The ticket has macro_f1 75.3 % against 80.0 %; it loses 4.7 points, more than the 1 allowed."
    )


def test_an_original_that_has_not_learned_has_nothing_to_keep(monkeypatch, tmp_path):
    known = {"validation": 0.5}
    cells = [cell("original", 0.5, constants=known), cell("ticket", 0.5, 0.5, constants=known)]
    text = verdict(monkeypatch, tmp_path, *cells, right=[True, False] * 50)
    assert text == (
        "The ticket has accuracy 50.0 % against 50.0 % (difference +0.0, 95 %: −1.9 to +1.9); "
        "the dense model has not learned the task, so there is nothing to match."
    )


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (0.89, "it loses at most 1 point, as requested."),  # 100 · (0.9 − 0.89) is 1.0000000000000009
        (0.8896, "it loses 1.04 points, more than the 1 allowed."),
        (0.87, "it loses 3.0 points, more than the 1 allowed."),
    ],
)
def test_exactly_the_accepted_loss_is_accepted(monkeypatch, tmp_path, after, told):
    text = verdict(monkeypatch, tmp_path, cell("original", 0.9), cell("ticket", after, 0.5))
    assert text.endswith(told)


def test_an_accepted_loss_is_told_with_what_the_interval_allows(monkeypatch, tmp_path):
    scores = {"test": 0.9, "test+typos": 0.8}
    cells = [cell("original", scores), cell("ticket", scores, 0.5)]
    text = verdict(monkeypatch, tmp_path, *cells, right=[True, False] * 50)
    assert text == (
        "The ticket has accuracy 90.0 % against 90.0 % (difference +0.0, 95 %: −1.9 to +1.9) and 80.0 % against 80.0 % "
        "on test with typos; it loses at most 1 point, as requested (with 95 % confidence, at most 1.9)."
    )


def test_one_example_and_equal_predictions_have_an_interval_with_a_width(monkeypatch, tmp_path):
    text = verdict(monkeypatch, tmp_path, cell("original", 1.0), cell("ticket", 1.0, 0.5), right=[True])
    assert "(difference +0.0, 95 %: −65.3 to +65.3)" in text


def test_a_session_shows_the_verdict_and_a_row_for_each_model(monkeypatch, tmp_path):
    monkeypatch.setattr(evaluate, "read_correct", lambda folder: None)
    cells = cell("original", 0.9), cell("ticket", 0.89, 0.5)
    found = judge(result(*cells, folder=tmp_path), AnyStore(), 1.0, tmp_path / "model")
    first, *rows = repr(found).splitlines()
    assert first == f"Compression: {found.verdict} ({tmp_path / 'model'})"
    assert [row.split(":")[0].split()[0] for row in rows] == ["original", "ticket"]


@pytest.mark.parametrize(
    ("speedup", "batch_size", "told"),
    [
        (2.0, [1, 32], ", short of the 2 requested,"),  # measured: 1.5 and 1.7
        (1.7, [1, 32], ", short of the 1.7 requested,"),
        (1.7, [32], ","),
        (1.52, [1, 32], ","),
        (1.5, [1, 32], ","),
    ],
)
def test_a_speed_up_that_is_clearly_missed_is_told(monkeypatch, tmp_path, speedup, batch_size, told):
    draw = {"layout": "uniform", "speedup": speedup, "batch_size": batch_size}
    recipe = {"search": {"method": "importance", "units": "head+neuron"}, "draw": draw}
    ticket = cell("ticket", 0.9, 0.5, recipe=recipe, measured=measured(1.5))
    text = verdict(monkeypatch, tmp_path, cell("original", 0.9), ticket)
    assert (
        f"is 1.50 times (batch 1) and 1.70 times (batch 32) as fast as the original{told} with accuracy"
        in text
    )
