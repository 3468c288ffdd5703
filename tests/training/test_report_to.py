"""`report_to` reaches the Trainer: a tracker that is named gets the logs, and nobody else does."""

import pytest
from transformers import TrainerCallback
from transformers.integrations import INTEGRATION_TO_CALLBACK

from tests.tiny import tiny
from tests.training.toy import toy_train
from tombola.errors import TombolaError
from tombola.training import loop


class Tracker(TrainerCallback):
    losses: list[float] = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.losses += [logs["loss"]] if "loss" in logs else []


@pytest.fixture
def _tracker(monkeypatch):
    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "notebook_of_mine", Tracker)
    monkeypatch.setattr(loop, "get_available_reporting_integrations", lambda: ["notebook_of_mine"])
    monkeypatch.setattr(Tracker, "losses", [])


@pytest.mark.usefixtures("_tracker")
def test_a_named_tracker_is_told_of_every_loss(tmp_path):
    log = toy_train(tiny("bert", num_labels=2), tmp_path, epochs=1, report_to=["notebook_of_mine"])
    assert Tracker.losses == [point.loss for point in log.curve]


@pytest.mark.usefixtures("_tracker")
def test_nobody_is_told_by_default(tmp_path):
    toy_train(tiny("bert", num_labels=2), tmp_path, epochs=1)
    assert Tracker.losses == []


@pytest.mark.usefixtures("_tracker")
def test_a_tracker_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TombolaError, match="'wandb' is not installed"):
        toy_train(tiny("bert", num_labels=2), tmp_path, epochs=1, report_to=["wandb"])


def test_tensorboard_gets_the_losses(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    log = toy_train(tiny("bert", num_labels=2), tmp_path / "run", epochs=1, report_to=["tensorboard"])
    events = accumulator.EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    written = [point.value for point in events.Scalars("train/loss")]
    assert written == pytest.approx([point.loss for point in log.curve], abs=1e-6)
