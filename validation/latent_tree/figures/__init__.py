"""Studies of the figures and tables of Tian, Yu, Chen and Ganguli (2020)."""

from validation import OUTPUT

FOLDER = OUTPUT / "latent_tree" / "figures"
"""Folder of the numbers behind the figures."""
