"""Studies of the figures and tables of Bae and Jeong (2024)."""

from validation import OUTPUT

FOLDER = OUTPUT / "hidden_manifold" / "figures"
"""Folder of the numbers behind the figures."""
