"""Published results on one-pass algorithms, each from the rule of its step; one file for each."""

from validation import OUTPUT

FOLDER = OUTPUT / "update_rule" / "papers"
"""Folder of the numbers behind the figures."""
