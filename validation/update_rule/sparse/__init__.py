"""Studies of weights under sparse priors, which are densities, and of densities of random rules."""

from pathlib import Path

from validation import OUTPUT, ROOT

FIGURES = Path(__file__).resolve().parent
FOLDER = OUTPUT / "update_rule" / "sparse"
"""Folder of the numbers behind the figures."""

PAGE = ROOT / "docs" / "sparse_learning.md"
