"""Comparison of results as distributions. Works on Datasets and arrays, and knows no solver."""

from meanfield.analysis.comparison import compare, format_comparison

__all__ = ["compare", "format_comparison"]
