"""Facts about the machine, real ones and those of machines that are not at hand."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from tombola.errors import TombolaError
from tombola.foundations.hardware import describe_machine, machine

X86 = """processor : 0
model name\t: Intel(R) Xeon(R) Platinum 8481C
flags\t\t: fpu avx2 amx_bf16 avx2

processor : 1
model name\t: another
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty stand-in for /proc and /sys/fs/cgroup."""
    monkeypatch.setattr(machine, "PROC", tmp_path)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    (tmp_path / "self").mkdir()
    return tmp_path


def test_processors_of_x86(linux: Path) -> None:
    (linux / "cpuinfo").write_text(X86)
    assert machine.processor().model == "Intel(R) Xeon(R) Platinum 8481C"
    assert machine.processor().flags == ("amx_bf16", "avx2", "fpu")


def test_processors_of_arm(linux: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "machine", lambda: "aarch64")
    (linux / "cpuinfo").write_text(ARM)
    assert machine.processor() == machine.Processor("aarch64 0x41 0xd40", ("asimd", "bf16", "fp"))


def test_without_cpuinfo_the_platform_is_asked(linux: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(machine.platform, "processor", lambda: "arm")
    assert machine.processor() == machine.Processor("arm64 arm", ())


def test_cores_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    assert machine.cores() == 3


def test_memory_is_limited_by_the_container_and_the_groups_around_it(linux: Path) -> None:
    (linux / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   2000000 kB\n")
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.memory() == machine.Memory(physical, 2_048_000_000)
    inner = linux / "cgroup" / "jobs" / "one"
    inner.mkdir(parents=True)
    (linux / "self" / "cgroup").write_text("0::/jobs/one\n")
    (inner / "memory.max").write_text("max\n")
    assert machine.memory() == machine.Memory(physical, 2_048_000_000)
    (inner.parent / "memory.max").write_text("1000000000\n")
    (inner.parent / "memory.current").write_text("400000000\n")
    assert machine.memory() == machine.Memory(1_000_000_000, 600_000_000)


def test_free_disk_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    expected = shutil.disk_usage(tmp_path).free
    assert machine.free_disk(tmp_path / "not" / "yet") == pytest.approx(expected, rel=0.05)


def test_the_device_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert machine.device_name() == "cpu"
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")
    assert machine.device_name() == "cuda: GPU of cuda"
    assert machine.device_name("cuda:1") == "cuda:1: GPU of cuda:1"


def test_the_description_is_short_and_json() -> None:
    facts = describe_machine()
    assert list(facts) == ["processor", "cores", "memory_gb", "device", "os"]
    assert json.loads(json.dumps(facts)) == facts
    assert 0 < facts["cores"] <= (os.cpu_count() or 1)
    assert facts["memory_gb"] > 0
    assert len(json.dumps(facts)) < 400


def test_a_device_is_the_processor_or_an_accelerator_that_torch_has(monkeypatch):
    assert machine.check_device("cpu") == "cpu"
    monkeypatch.setattr(machine, "default_device", lambda: "cuda")
    monkeypatch.setattr("torch.accelerator.device_count", lambda: 2)
    assert machine.check_device("cuda") == "cuda"
    assert machine.check_device("cuda:1") == "cuda:1"
    for missing in ("cuda:2", "mps", "gpu", ""):
        with pytest.raises(TombolaError, match=rf"device {missing}: .* which has cpu and cuda \(0 to 1\)"):
            machine.check_device(missing)
