"""Commands that stand in for the trial of precision, with the same output but a known outcome."""

import json
import sys
from typing import Any

GOOD = {"finite": True, "loss_difference": 0.0006, "gradient_difference": 0.004}


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def printing(*lines: dict[str, Any] | str, then: str = "") -> list[str]:
    """A trial that prints these lines and then runs this code."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return program(f"import os, signal, sys, time\nfor line in {texts!r}: print(line, flush=True)\n{then}")


def timed(fp32: list[float], bf16: list[float], **other: Any) -> list[str]:
    """A trial that ends well with these times."""
    first = {"fp32_seconds": fp32[:1]}
    return printing(first, {**first, "fp32_seconds": fp32, "bf16_seconds": bf16, **GOOD, **other})


def killed(signal: str, after_fp32: bool = True) -> list[str]:
    """A trial that a signal kills, in bf16 or already in fp32."""
    lines = [{"fp32_seconds": [0.5]}] if after_fp32 else []
    return printing(*lines, then=f"os.kill(os.getpid(), signal.{signal})")


UNUSED = program("raise SystemExit('this trial must not run')")
