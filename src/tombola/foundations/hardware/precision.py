"""Choose the arithmetic of a run by trying it, never by the processor's advertised features.

A processor may advertise bf16 instructions that kill the process, because a hypervisor hides the registers they need,
and bf16 that works may be slower than fp32. So a child process trains a small transformer in both; see `trial`.
"""

import logging
import os
import sys
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat, ValidationError

from tombola.errors import TombolaError
from tombola.foundations.hardware.child import Outcome, run_child
from tombola.foundations.hardware.machine import default_device, processor
from tombola.foundations.hardware.threads import PATIENT
from tombola.foundations.hardware.verdicts import ENVIRONMENT, Verdict, VerdictFile, identity

Precision = Literal["fp32", "bf16", "fp16"]

TRIAL = [sys.executable, "-P", str(Path(__file__).with_name("trial.py"))]
"""The command of the child process; `--threads` and `--device` are appended. Tests replace it."""

PATIENCE = 30.0  # seconds until a trial is stopped; an idle machine needs about 5
FASTER = 1.1  # how many times faster bf16 must be
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 0.02, 0.1  # relative; working bf16 is at about 0.0006 and 0.004
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")  # these say nothing about the machine

logger = logging.getLogger(__name__)

_known: dict[Path, Verdict] = {}
_logged: set[str] = set()


def probe_precision(threads: int | None = None, device: str | None = None) -> Verdict:
    """Decide between fp32 and bf16 by a trial in a child process, once per machine.

    The verdict is cached for this processor, torch version, number of threads, device and environment. The first call
    takes some seconds, later ones none.

    Args:
        threads: Threads of the run; torch's current number if not given.
        device: A torch device, such as `cpu` or `cuda`; the default device if not given.
    """
    if threads is None:
        import torch

        threads = torch.get_num_threads()
    device = device or default_device()
    file = VerdictFile(identity(threads, device))
    if file.path not in _known:
        _known[file.path] = file.read() or _probe(file, threads, device)
    return _known[file.path]


def resolve_precision(
    wanted: Literal["auto", "fp32", "bf16", "fp16"],
    threads: int | None = None,
    device: str | None = None,
) -> Precision:
    """Return the precision for a run with this setting. `bf16` and `fp16` mean autocast with 32-bit weights.

    Args:
        wanted: `auto` means bf16 if a trial ran correctly and faster than fp32, else fp32.
        threads: Threads of the run; torch's current number if not given.
        device: A torch device; the default device if not given.

    Raises:
        TombolaError: If this machine cannot run the wanted precision.
    """
    if wanted == "fp32":
        return "fp32"
    device = device or default_device()
    if wanted == "fp16":
        if not device.startswith("cuda"):
            raise TombolaError(
                f"precision: fp16 needs a CUDA GPU, not {device}: set precision: auto, bf16 or fp32."
            )
        return "fp16"
    verdict = probe_precision(threads, device)
    if wanted == "auto":
        _log_once(logging.INFO, f"precision: {verdict.precision} ({verdict.reason})")
        return verdict.precision
    if verdict.crashed:
        raise TombolaError(f"precision: bf16 cannot be used, {verdict.reason}: {_remedy(verdict, device)}.")
    if verdict.precision != "bf16":
        _log_once(logging.WARNING, f"{verdict.reason}; precision: auto would use fp32")
    return "bf16"


def _remedy(verdict: Verdict, device: str) -> str:
    if verdict.fp32_seconds is None:
        variables = [name for name in ENVIRONMENT if name in os.environ]
        return (
            f"unset {' and '.join(variables)}"
            if variables
            else "try again, or install another build of torch"
        )
    remedy = "set precision: fp32 (or auto)"
    limited = "ONEDNN_MAX_CPU_ISA" in os.environ or "DNNL_MAX_CPU_ISA" in os.environ
    if device == "cpu" and not limited and {"amx_bf16", "avx512_bf16"} <= set(processor().flags):
        remedy += ", or ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment if bf16 must run without AMX"
    return remedy


def _log_once(level: int, message: str) -> None:
    if message not in _logged:
        _logged.add(message)
        logger.log(level, message)


def _probe(file: VerdictFile, threads: int, device: str) -> Verdict:
    with file.lock(timeout=PATIENCE + 10):
        if verdict := file.read():  # another process was first
            return verdict
        logger.info("comparing bf16 with fp32 on this machine, once")
        verdict, lasting = _try(threads, device)
        if lasting:
            file.write(verdict)
        return verdict


class _Report(BaseModel):
    """The output of the child process, as far as it got."""

    model_config = ConfigDict(extra="forbid", strict=True)

    fp32_seconds: list[PositiveFloat] = []
    bf16_seconds: list[PositiveFloat] = []
    finite: bool = False
    loss_difference: float | None = None
    gradient_difference: float | None = None
    error: str | None = None


def _try(threads: int, device: str) -> tuple[Verdict, bool]:
    """Return the verdict of a trial, and whether it is reproducible."""
    # On a busy machine, spinning threads take cores from each other and hide the difference.
    trial = run_child(
        [*TRIAL, "--threads", str(threads), "--device", device],
        timeout=PATIENCE,
        environment=PATIENT,
    )
    if trial.timed_out:
        busy = trial.worked < PATIENCE / 2
        because = ", on a busy machine" if busy else ""
        return Verdict("fp32", f"the bf16 trial did not finish within {PATIENCE:.0f} s{because}"), not busy
    if trial.not_started:
        return Verdict("fp32", f"the bf16 trial could not start ({trial.not_started})"), False
    report = _read(trial)
    if trial.killed_by:
        return _crash(report, trial.killed_by)
    if report and report.error:
        return Verdict("fp32", f"the bf16 trial failed ({report.error})"), "memory" not in report.error
    if trial.code or report is None or not report.fp32_seconds or not report.bf16_seconds:
        return Verdict("fp32", f"the bf16 trial gave no result (exit code {trial.code})"), False
    return _judge(report), True


def _read(trial: Outcome) -> _Report | None:
    try:
        return _Report.model_validate(trial.report())
    except (ValueError, TypeError, ValidationError):
        return None


def _crash(report: _Report | None, name: str) -> tuple[Verdict, bool]:
    fp32 = min(report.fp32_seconds) if report and report.fp32_seconds else None
    if fp32 is None:
        reason = f"the fp32 trial was killed by {name} before bf16 was tried"
    else:
        reason = f"the bf16 trial was killed by {name}"
    return Verdict("fp32", reason, name, fp32), name not in FROM_OUTSIDE


def _judge(report: _Report) -> Verdict:
    fp32, bf16 = min(report.fp32_seconds), min(report.bf16_seconds)
    differences = (
        ("loss", report.loss_difference, LOSS_TOLERANCE),
        ("gradient", report.gradient_difference, GRADIENT_TOLERANCE),
    )
    for what, difference, tolerance in differences:
        if not report.finite or difference is None or not isfinite(difference):
            return Verdict("fp32", "bf16 gave non-finite numbers", None, fp32, bf16)
        if difference > tolerance:
            reason = f"the {what} in bf16 differed by {difference:.0%} from that in fp32"
            return Verdict("fp32", reason, None, fp32, bf16)
    pairs = zip(report.fp32_seconds, report.bf16_seconds, strict=False)
    best, typical = fp32 / bf16, median(slow / fast for slow, fast in pairs)
    if best < 1:
        return Verdict("fp32", f"bf16 was {_times(1 / best)} slower than fp32", None, fp32, bf16)
    if min(best, typical) < FASTER:
        return Verdict("fp32", f"bf16 was less than {FASTER} x faster than fp32", None, fp32, bf16)
    return Verdict("bf16", f"bf16 was {_times(best)} faster than fp32", None, fp32, bf16)


def _times(factor: float) -> str:
    return f"{factor:.1f} x" if factor >= 1.05 else f"{factor:.2f} x"
