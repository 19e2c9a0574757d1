"""Report: results as one self-contained HTML page."""

from meanfield.report.page import report

__all__ = ["report"]
