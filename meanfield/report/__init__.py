"""Report: results as one self-contained HTML page, with figures, or to move through."""

from meanfield.report.page import report
from meanfield.report.sliders import explore

__all__ = ["explore", "report"]
