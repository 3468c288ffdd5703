"""`report_to` reaches the Trainer: a tracker that is named gets the logs, and nobody else does."""

import importlib
import importlib.util
import sys

import pytest
from transformers import TrainerCallback
from transformers.integrations import INTEGRATION_TO_CALLBACK

from tests.tiny import tiny
from tests.training.toy import toy_train
from tombola.errors import TombolaError
from tombola.training import trackers
from tombola.training.trackers import check_trackers


class Tracker(TrainerCallback):
    losses: list[float] = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.losses += [logs["loss"]] if "loss" in logs else []


@pytest.fixture
def _tracker(monkeypatch):
    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "notebook_of_mine", Tracker)
    monkeypatch.setattr(trackers, "get_available_reporting_integrations", lambda: ["notebook_of_mine"])
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


TRACKIO = """
import types
told = []
context_vars = types.SimpleNamespace(current_space_id=types.SimpleNamespace(get=lambda: None))
config = {}
def init(**settings): told.append(("init", settings["project"]))
def log(values, **settings): told.append(("log", values))
def finish(): told.append(("finish", None))
"""
WANDB = """
run = None
key = True
told = []
class Run:
    summary = {}
    def __setitem__(self, name, value): ...
    def log(self, values, **settings): told.append(("log", values))
    def __getattr__(self, name): return lambda *args, **kwargs: None
def init(**settings):
    global run, config
    if not key:
        raise RuntimeError("No API key configured. Use `wandb login` to log in.\\nMore.")
    told.append(("init", settings["name"]))
    run, config = Run(), Run()
def finish():
    global run
    told.append(("finish", None))
    run = None
def log(values, **settings): told.append(("log", values))
def define_metric(*args, **settings): ...
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages that can be imported, with modules of the trackers' names in it."""
    folder = tmp_path / "packages"
    folder.mkdir()
    errors = "class ConfigError(Exception): ..."
    parts = {"": WANDB, "sdk": "", "sdk/lib": "", "sdk/lib/config_util": errors}
    for name, code in {"trackio": TRACKIO, **{f"wandb/{part}": code for part, code in parts.items()}}.items():
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(code)
    mine = [name for name in sys.modules if name.partition(".")[0] in ("trackio", "wandb")]
    for name in mine:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] in ("trackio", "wandb")]:
        del sys.modules[name]


@pytest.mark.usefixtures("packages")
def test_trackio_gets_the_losses_by_its_name(tmp_path):
    log = toy_train(tiny("bert", num_labels=2), tmp_path / "run", epochs=1, report_to=["trackio"])
    told = importlib.import_module("trackio").told
    assert told[0][0] == "init"
    losses = [values["train/loss"] for event, values in told if event == "log" and "train/loss" in values]
    assert losses == [point.loss for point in log.curve]


@pytest.mark.usefixtures("packages")
def test_every_training_is_a_run_of_wandb_named_after_its_stage(tmp_path):
    told = importlib.import_module("wandb").told
    for key in ("1234567890abcdef", "fedcba0987654321"):
        folder = tmp_path / "train" / f"{key}.partial" / "work"
        folder.mkdir(parents=True)
        log = toy_train(tiny("bert", num_labels=2), folder, epochs=1, report_to=["wandb"])
        losses = [values["train/loss"] for event, values in told if event == "log" and "train/loss" in values]
        assert losses == [point.loss for point in log.curve]
        assert [one for one in told if one[0] != "log"] == [("init", f"train/{key[:12]}"), ("finish", None)]
        told.clear()


@pytest.mark.usefixtures("packages")
def test_a_tracker_without_a_login_says_so_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("wandb"), "key", False)
    with pytest.raises(TombolaError) as told:
        toy_train(tiny("bert", num_labels=2), tmp_path / "run", epochs=1, report_to=["wandb"])
    assert str(told.value) == (
        "report_to: wandb could not start: No API key configured. Use `wandb login` to log in. Set it up as "
        "described in its documentation, or leave it out"
    )


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_a_tracker_that_is_missing_is_said_with_the_remedy(name):
    if importlib.util.find_spec(name):
        pytest.skip(f"{name} is installed")
    with pytest.raises(
        TombolaError, match=f"^report_to: '{name}' is not installed: pip install {name}, or leave"
    ):
        check_trackers([name])


def test_tensorboard_gets_the_losses(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    log = toy_train(tiny("bert", num_labels=2), tmp_path / "run", epochs=1, report_to=["tensorboard"])
    events = accumulator.EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    written = [point.value for point in events.Scalars("train/loss")]
    assert written == pytest.approx([point.loss for point in log.curve], abs=1e-6)
