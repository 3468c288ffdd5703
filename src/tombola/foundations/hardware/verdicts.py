"""Verdicts on precision, and the folder that remembers them per machine."""

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

FORMAT = 1  # raise it when the trial or the judgement changes, so that older verdicts are not read

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verdict:
    """Which precision suits the machine, and why.

    Args:
        precision: The precision that `auto` means here.
        reason: Why, in a few plain words.
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
    """Everything that a verdict depends on."""
    chip = processor()
    return {
        "format": FORMAT,
        "processor": chip.model,
        "flags": list(chip.flags),
        "kernel": platform.release(),  # it decides whether a process may use the registers of AMX
        "torch": version("torch"),
        "threads": threads,
        "device": device_name(device),
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    }


class VerdictFile:
    """The file that remembers the verdict for one identity."""

    def __init__(self, identity: dict[str, Any]) -> None:
        self.identity = identity
        key = blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=12).hexdigest()
        self.path = cache_folder() / "hardware" / f"precision-{key}.json"

    def read(self) -> Verdict | None:
        """The verdict, or None if there is no file or its content is not what was written."""
        try:
            text = self.path.read_bytes()
            content = json.loads(text)
            if content["identity"] != self.identity or not is_intact(text, required=True):
                return None
            return TypeAdapter(Verdict).validate_json(json.dumps(content["verdict"]))
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            return None

    def write(self, verdict: Verdict) -> None:
        """Put the whole file in place at once. A folder that cannot be written costs a trial in each process."""
        try:
            write_whole(self.path, sealed({"identity": self.identity, "verdict": asdict(verdict)}))
        except OSError as error:
            folder = with_tilde(str(self.path.parent))
            logger.info("the verdict on precision cannot be kept in %s: %s", folder, error.strerror)

    @contextmanager
    def lock(self, timeout: float) -> Iterator[None]:
        """Keep other processes from probing meanwhile, where the folder allows locks."""
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
