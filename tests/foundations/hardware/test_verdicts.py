"""A verdict is remembered for exactly the machine and settings that it was found for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.foundations.hardware.stand_ins import killed, printing, program, timed
from tombola.foundations.hardware import precision, probe_precision, verdicts
from tombola.foundations.hardware.child import Outcome
from tombola.foundations.hardware.machine import Processor


class Counting:
    """A stand-in for the trial that counts how often it ran."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.log = folder / "trials"
        self.command = program(f"open({str(self.log)!r}, 'a').write('x')\n{command[-1]}")

    @property
    def trials(self) -> int:
        return len(self.log.read_text()) if self.log.exists() else 0


@pytest.fixture
def faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting(tmp_path, timed([2.0], [1.0]))
    monkeypatch.setattr(precision, "TRIAL", counting.command)
    return counting


def new_process() -> None:
    precision._known.clear()


def test_the_trial_runs_once(faster: Counting, cache: Path) -> None:
    first = probe_precision(threads=1, device="cpu")
    assert probe_precision(threads=1, device="cpu") == first
    new_process()
    assert probe_precision(threads=1, device="cpu") == first
    assert faster.trials == 1
    assert len(list(cache.glob("*.json"))) == 1
    assert {path.suffix for path in cache.iterdir()} <= {".json", ".lock"}


def test_another_machine_or_setting_is_probed_again(
    faster: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe_precision(threads=1, device="cpu")
    probe_precision(threads=2, device="cpu")
    assert faster.trials == 2
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 3
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 4
    monkeypatch.setattr(verdicts, "version", lambda package: "99.0")
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 5
    monkeypatch.setattr(verdicts, "processor", lambda: Processor("another", ("avx2",)))
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 6
    monkeypatch.setattr(verdicts, "processor", lambda: Processor("another", ("avx2", "amx_bf16")))
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 7
    monkeypatch.setattr(verdicts, "device_name", lambda device: "cuda: another")
    probe_precision(threads=1, device="cpu")
    assert faster.trials == 8


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "\0" * 100,
        lambda text: text.replace('"bf16"', '"fp64"'),
        lambda text: text.replace('"crashed": null', '"crashed": 4'),
        lambda text: text.replace('"threads": 1', '"threads": 8'),
        lambda text: text.replace('"reason"', '"reasons"'),
        lambda text: text.replace('"fp32_seconds": 2.0', '"fp32_seconds": "2.0"'),
        lambda text: text.replace('"crashed"', '"more": 1, "crashed"'),
    ],
)
def test_a_damaged_file_is_probed_again(damage, faster: Counting, cache: Path) -> None:
    verdict = probe_precision(threads=1, device="cpu")
    (file,) = cache.glob("*.json")
    whole = file.read_text()
    file.write_text(damage(whole))
    assert file.read_text() != whole
    new_process()
    assert probe_precision(threads=1, device="cpu") == verdict
    assert faster.trials == 2
    assert file.read_text() == whole


@pytest.mark.parametrize(
    ("command", "lasting"),
    [
        (killed("SIGILL"), True),
        (killed("SIGSEGV"), True),
        (killed("SIGKILL"), False),  # perhaps there was no memory left
        (killed("SIGTERM"), False),
        (printing({"error": "autocast does not support bf16"}, then="sys.exit(1)"), True),
        (printing({"error": "CUDA out of memory"}, then="sys.exit(1)"), False),
        (printing("garbage"), False),
    ],
)
def test_only_what_the_machine_did_is_remembered(
    command: list[str], lasting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(tmp_path, command)
    monkeypatch.setattr(precision, "TRIAL", counting.command)
    for _ in range(2):
        assert probe_precision(threads=1, device="cpu").precision == "fp32"
        probe_precision(threads=1, device="cpu")
        new_process()
    assert counting.trials == (1 if lasting else 2)


@pytest.mark.parametrize(("worked", "remembered"), [(0.9, True), (0.1, False)])
def test_a_time_out_is_remembered_unless_the_machine_was_busy(
    worked: float, remembered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Outcome(timed_out=True, worked=worked * precision.PATIENCE)
    trials: list[object] = []
    monkeypatch.setattr(precision, "run_child", lambda *given, **named: trials.append(given) or stopped)
    for _ in range(2):
        assert probe_precision(threads=1, device="cpu").precision == "fp32"
        new_process()
    assert len(trials) == (1 if remembered else 2)


@pytest.mark.parametrize("place", ["file/below", "/proc/tombola", "read only"])
def test_a_folder_that_cannot_be_written_does_not_matter(
    place: str, faster: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / place
    if (
        place == "read only"
    ):  # the superuser may write in spite of the mode, so that the write itself fails too
        folder.mkdir(mode=0o500)
        monkeypatch.setattr(
            verdicts, "write_whole", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied"))
        )
    monkeypatch.setenv("TOMBOLA_CACHE", str(folder))
    for _ in range(2):
        assert probe_precision(threads=1, device="cpu").precision == "bf16"
    assert faster.trials == 1
    new_process()
    assert probe_precision(threads=1, device="cpu").precision == "bf16"
    assert faster.trials == 2


def test_a_user_without_a_home_gets_a_folder_of_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOMBOLA_CACHE")
    monkeypatch.setattr(Path, "expanduser", lambda path: (_ for _ in ()).throw(RuntimeError("no home")))
    assert verdicts.cache_folder().name.startswith("tombola-")


def test_a_failed_write_leaves_no_draft(
    faster: Counting, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(verdicts.os, "replace", full)
    assert probe_precision(threads=1, device="cpu").precision == "bf16"
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]


PROBE = """
import sys, time
from contextlib import nullcontext
from pathlib import Path
from tombola.foundations.hardware import precision
from tombola.foundations.hardware.verdicts import VerdictFile
if sys.argv[1] == "unlocked":
    VerdictFile.lock = lambda self, timeout: nullcontext()
precision.TRIAL = sys.argv[4:]
Path(sys.argv[2]).touch()
while not Path(sys.argv[3]).exists():
    time.sleep(0.01)
print(precision.probe_precision(threads=1, device="cpu").reason)
"""


@pytest.mark.parametrize(("lock", "trials"), [("locked", 1), ("unlocked", 2)])
def test_processes_that_probe_at_once_do_not_disturb_each_other(
    lock: str, trials: int, tmp_path: Path, cache: Path
) -> None:
    counting = Counting(tmp_path, program(f"import time; time.sleep(0.5)\n{timed([2.0], [1.0])[-1]}"))
    ready = [tmp_path / "ready0", tmp_path / "ready1"]
    start = tmp_path / "start"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROBE, lock, str(flag), str(start), *counting.command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for flag in ready
    ]
    while not all(flag.exists() for flag in ready):
        assert all(process.poll() is None for process in processes)
    start.touch()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert outputs == [("bf16 was 2.0 x faster than fp32\n", "")] * 2
    assert counting.trials == trials
    (file,) = cache.glob("*.json")
    assert json.loads(file.read_text())["verdict"]["precision"] == "bf16"
    assert {path.suffix for path in cache.iterdir()} <= {".json", ".lock"}
