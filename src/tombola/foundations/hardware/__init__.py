"""The machine: its hardware, and which precision runs well on it. Importing this does not import torch."""

from tombola.foundations.hardware.autocast import autocast
from tombola.foundations.hardware.machine import describe_machine
from tombola.foundations.hardware.precision import Precision, probe_precision, resolve_precision
from tombola.foundations.hardware.verdicts import Verdict

__all__ = ["Precision", "Verdict", "autocast", "describe_machine", "probe_precision", "resolve_precision"]
