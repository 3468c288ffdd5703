"""Verdicts on precision, and their cache per machine."""

import json
import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Literal

from filelock import FileLock
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tombola.foundations.checksums import is_intact, sealed, write_whole
from tombola.foundations.folders import cache_folder, with_tilde
from tombola.foundations.hardware.machine import device_name, processor

ENVIRONMENT = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
)
"""Variables that change which instructions torch uses."""

FORMAT = 2  # increase it when the trial or the judgement changes, to invalidate older verdicts

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verdict:
    """Which precision suits the machine, and why.

    Args:
        precision: The precision that `auto` selects.
        reason: The reason, in a few words.
        crashed: The signal that killed the trial, such as `SIGILL`.
        fp32_seconds: Time of a training step in fp32, if one finished.
        bf16_seconds: Time of a training step in bf16, if one finished.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    precision: Literal["fp32", "bf16"]
    reason: str
    crashed: str | None = None
    fp32_seconds: float | None = None
    bf16_seconds: float | None = None


def identity(threads: int, device: str) -> dict[str, Any]:
    """Return everything that a verdict depends on."""
    chip = processor()
    return {
        "format": FORMAT,
        "processor": chip.model,
        "flags": list(chip.flags),
        "kernel": platform.release(),  # it determines whether a process may use AMX registers
        "torch": version("torch"),
        "threads": threads,
        "device": device_name(device),
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    }


class VerdictFile:
    """The file that stores the verdict for one identity."""

    def __init__(self, identity: dict[str, Any]) -> None:
        self.identity = identity
        key = blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=12).hexdigest()
        self.path = cache_folder() / "hardware" / f"precision-{key}.json"

    def read(self) -> Verdict | None:
        """Read the verdict; None if the file is missing or damaged."""
        try:
            text = self.path.read_bytes()
            content = json.loads(text)
            if content["identity"] != self.identity or not is_intact(text, required=True):
                return None
            return TypeAdapter(Verdict).validate_json(json.dumps(content["verdict"]))
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            return None

    def write(self, verdict: Verdict) -> None:
        """Write the file atomically. If the folder is not writable, every process runs its own trial."""
        try:
            write_whole(self.path, sealed({"identity": self.identity, "verdict": asdict(verdict)}))
        except OSError as error:
            folder = with_tilde(str(self.path.parent))
            logger.info("the result of the precision test cannot be saved in %s: %s", folder, error.strerror)

    @contextmanager
    def lock(self, timeout: float) -> Iterator[None]:
        """Keep other processes from probing meanwhile, if the folder supports locks."""
        lock = FileLock(self.path.with_suffix(".lock"), timeout=timeout)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except (OSError, NotImplementedError):  # unwritable, without locks, or locked for too long
            pass
        try:
            yield
        finally:
            lock.release()
