"""The report: one self-contained page that a person can read."""

from tombola.report.masks import write_masks
from tombola.report.page import write_report

__all__ = ["write_masks", "write_report"]
