"""The report: one self-contained HTML page."""

from tombola.report.masks import write_masks
from tombola.report.page import report, write_report

__all__ = ["report", "write_masks", "write_report"]
