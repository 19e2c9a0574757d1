"""Studies of the figures and of the table of Tian (2022)."""

from validation import OUTPUT

FOLDER = OUTPUT / "alpha_contrastive" / "figures"
"""Folder of the numbers behind the figures."""
