"""Fits of numbers of problems to runs. Works on Datasets and what families declare, and knows no solver."""

from meanfield.fitting.estimates import fit, format_fit

__all__ = ["fit", "format_fit"]
