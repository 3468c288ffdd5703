"""Facts about the machine: processor, cores, memory, disk and device."""

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tombola.errors import TombolaError
from tombola.foundations.caching import cached_in_run

GB = 1e9
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Processor:
    """A processor's model and advertised features, which may still not work."""

    model: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Memory:
    """Bytes of memory that this process may use in total, and that are free now (None if unknown)."""

    total: int
    available: int | None


def processor() -> Processor:
    """Return the processor's model and flags, as far as the operating system reports them."""
    facts: dict[str, str] = {}
    for line in _read(PROC / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip().lower(), value.strip())
    arm = " ".join(facts[name] for name in ("cpu implementer", "cpu part") if name in facts)
    model = facts.get("model name") or f"{platform.machine()} {arm or platform.processor()}".strip()
    flags = facts.get("flags") or facts.get("features") or ""
    return Processor(model, tuple(sorted(set(flags.split()))))


def cores() -> int:
    """Return the number of cores that this process may use, possibly fewer than the machine has."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> Memory:
    """Return the memory of the machine, or of the container if its limit is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    available = None
    for line in _read(PROC / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    for folder in _memory_groups():
        limit, used = (_read(folder / name).strip() for name in ("memory.max", "memory.current"))
        if limit.isdigit() and int(limit) < total:
            total = int(limit)
        if limit.isdigit() and used.isdigit() and available is not None:
            available = min(available, max(0, int(limit) - int(used)))
    return Memory(total, available)


def existing_part(path: str | Path) -> Path:
    """Return the path or, if it does not exist yet, the nearest existing parent."""
    place = Path(path).expanduser().absolute()
    return next(part for part in (place, *place.parents) if part.exists())


def free_disk(path: str | Path) -> int:
    """Return the free bytes at the path or, if it does not exist yet, where it would be created."""
    return shutil.disk_usage(existing_part(path)).free


def default_device() -> str:
    """Return the default device type: the accelerator if torch finds one, else `cpu`."""
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator.type if accelerator is not None else "cpu"


def check_device(name: str) -> str:
    """Return the device name if torch has this device.

    Args:
        name: `cpu`, or an accelerator such as `cuda`, `cuda:1` or `mps`.

    Raises:
        TombolaError: If there is no such device.
    """
    if name == "cpu":
        return name
    import torch

    default = default_device()
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    count = torch.accelerator.device_count() if default != "cpu" else 0
    if device is not None and device.type == default and (device.index or 0) < count:
        return name
    available = (
        "cpu" if default == "cpu" else f"cpu and {default}" + (f" (0 to {count - 1})" if count > 1 else "")
    )
    raise TombolaError(f"device {name}: not available in torch on this machine, which has {available}")


def device_name(device: str | None = None) -> str:
    """Return the device with its model, such as `cuda: NVIDIA A100-SXM4-40GB`, or just `cpu`.

    Args:
        device: A torch device, such as `cuda` or `cuda:1`; the default device if not given.
    """
    device = device or default_device()
    if not device.startswith("cuda"):
        return device
    import torch

    return f"{device}: {torch.cuda.get_device_name(torch.device(device))}"


@cached_in_run
def timed_on(device: str) -> str:
    """Return the processor or accelerator behind a device, which determines how fast models are on it.

    Args:
        device: `cpu`, or an accelerator such as `cuda` or `cuda:1`.
    """
    return processor().model if device == "cpu" else device_name(device)


def describe_machine() -> dict[str, Any]:
    """Return short facts for results and reports: processor, cores, memory_gb, device, os."""
    return {
        "processor": processor().model,
        "cores": cores(),
        "memory_gb": round(memory().total / GB, 1),
        "device": device_name(),
        "os": f"{platform.system()} {platform.release()}",
    }


def _memory_groups() -> list[Path]:
    """Return the control groups (version 2) of this process, each of which may limit its memory."""
    for line in _read(PROC / "self" / "cgroup").splitlines():
        if line.startswith("0::/"):
            group = Path(line.removeprefix("0::/"))
            return [CGROUPS / group, *(CGROUPS / parent for parent in group.parents)]
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
