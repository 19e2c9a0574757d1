"""Comparison of results as distributions. Works on Datasets and arrays, and knows no solver."""

from meanfield.comparison.comparison import compare
from meanfield.comparison.wording import format_comparison

__all__ = ["compare", "format_comparison"]
