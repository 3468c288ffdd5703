"""The report: one self-contained page that a person can read, from a result."""

from tombola.report.page import write_report

__all__ = ["write_report"]
