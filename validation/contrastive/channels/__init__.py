"""Studies of several channels: what the penalty keeps apart, what mixes, and what chance decides."""

from validation import OUTPUT

FOLDER = OUTPUT / "several_channels"
"""Folder of the numbers behind the figures."""
